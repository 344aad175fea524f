"""What the event of an outcome says: how a call ended, and what of its answer is not on the tape yet.

By hand where it is made of numbers and one text: to encode, and to look for secrets in, what we know to
hold none costs as much as the rest of a call. Knows members of one event; not calls, not when they end.
"""

from __future__ import annotations

from playhead import events
from playhead.recording.chunks import spelled_together, told_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.events import Ref
    from playhead.recording.chunks import Held
    from playhead.recording.recorder import Recorder


def add_value(recorder: Recorder, call: int, took_ns: int, value: Any) -> bool:
    """The outcome of a call that gave something back, and nothing else; False: it must be looked at."""
    spelled = recorder.spell_value(value)
    if spelled is None:
        return False
    told = b'{"call":%d,"how":"returned","took_ns":%d,"value":%b}' % (call, took_ns, spelled)
    recorder.add(events.OUTCOME, told, '""', None, None, call, None, False, True)
    return True


def add(  # noqa: PLR0917  (by position: see `Recorder.add`)
    recorder: Recorder,
    call: Ref,
    how: str,
    took_ns: int,
    members: dict[str, Any],
    counts: tuple[int, int] | None,
    held: Held | None,
) -> None:
    """`counts`: of the pieces of its streams and their bytes."""
    if held is not None and counts is not None and type(call) is int:
        spelled = _spelled(recorder, members, held)
        if spelled is not None:
            told = b'{"call":%d,"how":"%b","took_ns":%d,"chunks":%d,"bytes":%d,"streams":%b}' % (
                call,
                how.encode(),
                took_ns,
                *counts,
                spelled,
            )
            recorder.add(events.OUTCOME, told, '""', None, None, call, None, False, True)
            return
    data: dict[str, Any] = {"call": call, "how": how, "took_ns": took_ns}
    if counts is not None:
        data["chunks"], data["bytes"] = counts
    if held is not None:
        data["streams"] = told_together(recorder, held)
    clean = True
    for name, item in members.items():
        if item is not None or name == "value":
            data[name] = item
            if item is not None and type(item) is not int:
                clean = False
    recorder.add(events.OUTCOME, data, '""', None, None, call, None, False, clean)


def _spelled(recorder: Recorder, members: dict[str, Any], held: Held) -> bytes | None:
    """Streams and what follows them, as JSON; None: something has to be looked at."""
    rest = b""
    for name, item in members.items():
        if item is None:
            if name == "value":
                rest += b',"value":null'
        elif type(item) is int:
            rest += b',"%b":%d' % (name.encode(), item)
        else:
            return None
    streams = spelled_together(recorder, held)
    return None if streams is None else streams + rest
