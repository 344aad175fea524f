"""What a taped process did, as steps that can be played again. Pure; knows marks, not descriptors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from playhead.deck import Piece, Taped

# What the program did to the process; everything else is what it saw of it.
_ACTS = frozenset({"stdin", "signal", "closed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """First wait until the program has done as much as it had then, then give what it saw next.

    `stdin` counts bytes from the start; `lines` likewise, or None where the program had not ended
    a line there: what is minted anew in each run (a pid, a time) may differ in length.
    """

    stdin: int = 0
    lines: int | None = None
    closed: frozenset[str] = frozenset()
    signals: int = 0
    writes: tuple[tuple[str, bytes], ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole process, from its start to its end."""

    steps: tuple[Step, ...]
    # All that the program sent, and by which signals.
    stdin: bytes
    signals: tuple[str, ...]
    # What the stand-in is told in the end, in the language of sh; None: it lives until it is killed.
    ending: str | None


def script_of(taped: Taped, *, sent: bool = False) -> Script:
    """`sent`: what went to stdin is part of the request; the process ends after it was all read."""
    ending = ending_of(taped.value, taped.facts) if taped.how == "returned" else None
    steps = _steps(taped.pieces)
    if sent:
        steps.append(Step(closed=frozenset({"stdin"})))
    return Script(
        steps=tuple(steps),
        stdin=b"".join(piece.data for piece in taped.pieces if piece.stream == "stdin"),
        signals=tuple(_word(piece) for piece in taped.pieces if piece.stream == "signal"),
        ending=ending,
    )


def _steps(pieces: Sequence[Piece]) -> list[Step]:
    steps: list[Step] = []
    stdin, lines, signals = 0, 0, 0
    closed: set[str] = set()
    ended_line = False
    for acts, group in groupby(pieces, key=lambda piece: piece.stream in _ACTS):
        together = list(group)
        for piece in together if acts else ():
            if piece.stream == "stdin":
                stdin += len(piece.data)
                lines += piece.data.count(b"\n")
                ended_line = piece.data.endswith(b"\n")
            elif piece.stream == "signal":
                signals += 1
            else:
                closed.add(_word(piece))
        seen = () if acts else together
        steps.append(
            Step(
                stdin=stdin,
                lines=lines if ended_line else None,
                closed=frozenset(closed),
                signals=signals,
                writes=tuple((one.stream, one.data) for one in seen if one.stream != "eof"),
                ends=tuple(_word(one) for one in seen if one.stream == "eof"),
            )
        )
    return steps


def _word(piece: Piece) -> str:
    return piece.data.decode("ascii", "replace")


def ending_of(value: Any, facts: Mapping[str, Any]) -> str:
    """How to end as the taped process did, said to sh."""
    code = value if isinstance(value, int) else int(facts.get("exit_code") or 0)
    if code >= 0:
        return f"exit {code & 255}"
    # No core file for a death that is only played; and should the signal be one that the program
    # ignores, and so its children, the stand-in must go all the same.
    return f"ulimit -c 0; kill -{-code} $$; exit {128 - code}"
