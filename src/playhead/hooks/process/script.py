"""Turn a taped process into steps that a player can play. Pure; knows marks, does not know descriptors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from playhead.recording.calls import Moment
from playhead.recording.deck import Piece, Taped

# Actions of the program on the process; everything else is an observation of the program.
_ACTS = frozenset({"stdin", "signal", "closed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A step that waits until the program has done as much as in the recorded run.

    `stdin` counts bytes from the start; `lines` counts lines, or is None if the program had not ended a line
    there: values that change in every run (a pid, a time) may differ in length.
    """

    stdin: int = 0
    lines: int | None = None
    closed: frozenset[str] = frozenset()
    signals: int = 0
    # Whether it waits for `Player.show`.
    for_show: bool = False
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """A step that shows the program a piece of a stream, or its end (`data` is None)."""

    stream: str
    data: bytes | None
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole process, from its start to its end."""

    steps: tuple[Wait | Show, ...]
    # All input and all signals that the program sent.
    stdin: bytes
    signals: tuple[str, ...]
    # The exit code, or the negative of the signal that killed it; None if it runs until it is killed.
    ending: int | None
    # When the process ended.
    ended_ns: int = 0
    # When the program had also seen the end of every stream, where the order of the tape is kept.
    over_ns: int | None = None
    # Which check of the program found that the process had ended; 0 if it waited for the end. None: it never checked,
    # or the tape is of an older version.
    found_by_poll: int | None = None
    # The whole run ended while this process was running.
    cut: bool = False
    # Whether a program with its own clock writes to this process: then times in its input do not count.
    has_own_clock: bool = False
    # Whether no hook sees in which order the program reads stdout and stderr.
    is_read_unseen: bool = False

    def size_of(self, stream: str) -> int:
        """Return the number of bytes that the process writes to this stream."""
        shown = (step for step in self.steps if isinstance(step, Show) and step.stream == stream)
        return sum(len(one.data) for one in shown if one.data is not None)

    def held(self) -> Script:
        """Return this script with a wait for `Player.show` before the first output, or before the exit. The process
        reads its input meanwhile.
        """
        shows = (at for at, step in enumerate(self.steps) if isinstance(step, Show))
        first = next(shows, len(self.steps))
        return replace(self, steps=(*self.steps[:first], Wait(for_show=True), *self.steps[first:]))

    def waits_after(self, step: int) -> bool:
        """Return whether the program has actions on the process to repeat, from this step on."""
        return any(isinstance(one, Wait) for one in self.steps[step:])


def script_of(taped: Taped, *, sent: bool = False) -> Script:
    """Return the script of a taped process. If `sent`, stdin is part of the request, and the process ends after all of
    stdin has been read.
    """
    ended_ns = _ended_ns(taped)
    # Data that the program read after it knew of the exit was written before the exit.
    is_ordered = type(ended_ns) is Moment and ended_ns.place is not None
    latest = None if is_ordered or taped.how != "returned" else ended_ns
    steps = [*_steps(taped.pieces, latest)]
    if is_ordered:
        steps = _with_ends(steps, taped.facts.get("eof_ns"))
    if sent:
        steps.append(Wait(closed=frozenset({"stdin"})))
    return Script(
        steps=tuple(steps),
        stdin=b"".join(piece.data for piece in taped.pieces if piece.stream == "stdin"),
        signals=tuple(_word(piece) for piece in taped.pieces if piece.stream == "signal"),
        ending=ending_of(taped.value, taped.facts) if taped.how == "returned" else None,
        ended_ns=ended_ns,
        over_ns=taped.took_ns if is_ordered else None,
        found_by_poll=found if type(found := taped.facts.get("found_by_poll")) is int else None,
        cut=taped.how == "cut",
    )


def _ended_ns(taped: Taped) -> int:
    """Return when the process ended. If the program polled it between sleeps, this is halfway between the last poll
    that found it running and the first one that did not: so the same poll finds the exit in a replay.
    """
    known = taped.facts.get("exited_ns") or taped.took_ns
    if type(known) is Moment:
        return known
    alive = taped.facts.get("alive_ns")
    return (int(known) + int(alive)) // 2 if alive is not None else int(known)


def _steps(pieces: Sequence[Piece], latest: int | None) -> Iterator[Wait | Show]:
    stdin, lines, signals = 0, 0, 0
    closed: set[str] = set()
    ended_line = False
    for acts, group in groupby(pieces, key=lambda piece: piece.stream in _ACTS):
        if not acts:
            yield from (_shown(piece, latest) for piece in group)
            continue
        at_ns = 0
        for piece in group:
            at_ns = piece.at_ns
            if piece.stream == "stdin":
                stdin += len(piece.data)
                lines += piece.data.count(b"\n")
                ended_line = piece.data.endswith(b"\n")
            elif piece.stream == "signal":
                signals += 1
            else:
                closed.add(_word(piece))
        yield Wait(
            stdin=stdin,
            lines=lines if ended_line else None,
            closed=frozenset(closed),
            signals=signals,
            at_ns=at_ns,
        )


def _with_ends(steps: list[Wait | Show], eof_ns: Any) -> list[Wait | Show]:
    """Return the steps with the end of each stream at the place where the program saw it. `steps` has only the ends
    that precede an action of the program, with the time of that action.
    """
    ends = dict(eof_ns) if isinstance(eof_ns, Mapping) else {}
    made: list[Wait | Show] = []
    for step in steps:
        is_end = isinstance(step, Show) and step.data is None
        known = ends.pop(step.stream, None) if isinstance(step, Show) and is_end else None
        if isinstance(step, Show) and known is not None:
            made.append(Show(stream=step.stream, data=None, at_ns=known))
        else:
            made.append(step)
    for stream, at_ns in sorted(ends.items(), key=lambda one: int(one[1])):
        at = len(made)
        while at and isinstance(before := made[at - 1], Show) and before.at_ns > at_ns:
            at -= 1
        made.insert(at, Show(stream=stream, data=None, at_ns=at_ns))
    return made


def _shown(piece: Piece, latest: int | None) -> Show:
    at_ns = piece.at_ns if latest is None else min(piece.at_ns, latest)
    if piece.stream == "eof":
        return Show(stream=_word(piece), data=None, at_ns=at_ns)
    return Show(stream=piece.stream, data=piece.data, at_ns=at_ns)


def _word(piece: Piece) -> str:
    return piece.data.decode("ascii", "replace")


def ending_of(value: Any, facts: Mapping[str, Any]) -> int:
    """Return how the taped process ended: its exit code, or the negative of a signal."""
    return value if isinstance(value, int) else int(facts.get("exit_code") or 0)
