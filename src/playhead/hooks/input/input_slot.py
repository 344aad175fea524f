"""Recognise the run's stdin in this process, and record a read of it as a call.

A process of a run may have any stdin: a pipe from its parent, /dev/null, or the stdin that the person gave to the
run. Only the last one is input to the run; the launcher passes on its kind, device and inode. Knows the identity of
stdin; does not know which functions read it.
"""

from __future__ import annotations

import os

from playhead.host.later import Later
from playhead.recording import deck
from playhead.recording.adapter import Adapter
from playhead.recording.chunks import as_bytes, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from playhead.recording.crossing import Crossing
    from playhead.recording.deck import Deck
    from playhead.recording.recorder import Recorder
else:
    threading = Later("threading")

NAME = "stdin"

_kind = ""
_place = (-1, -1)
# Reads that have not returned: a daemon thread may wait for input when the process ends.
_pending: set[Crossing] = set()
_watched: set[Recorder] = set()


def begin(identity: str | None) -> None:
    """Set the identity of the run's stdin; None if the processes of this run do not record it."""
    global _kind, _place
    kind, device, inode = (identity or ":-1:-1").split(":")
    _kind, _place = kind, (int(device), int(inode))


def is_recorded() -> bool:
    """Return whether the processes of this run record its stdin."""
    return bool(_kind)


def is_terminal() -> bool:
    return _kind == "terminal"


def is_run_stdin(fd: int) -> bool:
    """Return whether this descriptor is the stdin of the run."""
    if not _kind:
        return False
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == _place


def deck_for_read() -> Deck | None:
    """Return the deck that records a read of the run's stdin; None if nothing records, or if an outer read does."""
    open_deck = deck.active()
    if open_deck is None or not open_deck.intercepts or open_deck.is_inside("input"):
        return None
    return open_deck


def read(live: Callable[[], bytes], via: str) -> bytes:
    """Read from the run's stdin, with `live` or from the tape. `via` names the function that the program called."""
    open_deck = deck_for_read()
    if open_deck is None:
        return live()
    call = deck.Call(boundary="input", name=NAME, facts={"via": via})
    if _is_beside() and not open_deck.has_answer(call):
        # Not the main thread. On the tape no more input arrived, so the thread waits for ever. If the program has
        # nothing else to do, the replay notices it.
        threading.Event().wait()
    data: bytes = open_deck.perform(call, ReadAdapter(live))
    return data


def _is_beside() -> bool:
    return threading.current_thread() is not threading.main_thread()


def watch(crossing: Crossing) -> None:
    """Report the crossing as left if the process ends before it does."""
    recorder = crossing.deck.recorder
    if recorder not in _watched:
        _watched.add(recorder)
        recorder.last_words.append(_leave_all)
    _pending.add(crossing)


def forget(crossing: Crossing) -> None:
    _pending.discard(crossing)


def _leave_all() -> None:
    while _pending:
        _pending.pop().left()


class ReadAdapter(Adapter):
    """One read. Its outcome is the data; empty data is the end of the input."""

    __slots__ = ("_live",)

    def __init__(self, live: Callable[[], bytes]) -> None:
        self._live = live

    def live(self, crossing: Crossing) -> bytes:
        watch(crossing)
        try:
            return self._live()
        finally:
            forget(crossing)

    def observe(self, crossing: Crossing, result: bytes) -> bytes:
        crossing.returned(as_text(result))
        return result

    def serve(self, crossing: Crossing) -> bytes:
        taped = crossing.taped
        if taped is None:
            raise AssertionError("only a taped call is served")
        if taped.how == "left":
            # The recorded process ended while this thread waited for input, so the thread waits for ever.
            threading.Event().wait()
        if isinstance(taped.error, BaseException):
            crossing.raised(taped.error)
            raise taped.error
        crossing.returned(taped.value)
        return as_bytes(taped.value if isinstance(taped.value, dict) else {})


def _start_anew() -> None:
    _pending.clear()  # the parent reports them


os.register_at_fork(after_in_child=_start_anew)
