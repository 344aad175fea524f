"""Compare the output of the recorded run with that of the replay. Pure; knows outputs on tapes and JSON lines.

A hooked Python gets its clock and its ids from the tape, and prints the same bytes. A program that is recorded
only through the proxy has its own clock and ids: there, ids, times and the order of racing lines are ignored, and
differences on stderr are reported but do not fail the replay.

Tracebacks are reduced to the program's own frames, the type, the message and the chain of exceptions: a replay
raises a taped exception without the frames of the client's transport. Line numbers are ignored, because an edit
above a line moves it. Addresses in memory and ids of processes are compared by their part in the text
(`moving_values`). Lines that HTTP libraries logged about their connections are left out: a replay has none. So are
lines in which `uv run` says that it made the environment: it does so once.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from playhead.events import Event
from playhead.recording.chunks import as_bytes
from playhead.replay.matching.fingerprint import VOLATILE
from playhead.replay.matching.normalise import settled_text
from playhead.replay.matching.taped import TapedRun
from playhead.replay.report.joined_output import is_interleaved
from playhead.replay.report.moving_values import settled

_HEADER = re.compile(r"^(?P<margin>[\s|+-]*)Traceback \(most recent call last\):$")
_FRAME = re.compile(
    r'^(?P<margin>[\s|]*?)  File "(?P<file>[^"]*)", line \d+(?:, in (?P<function>.*))?$'
)
_LIBRARY = re.compile(
    r"[/\\](?:site-packages|dist-packages)[/\\]"
    r"|[/\\]lib[/\\]python3\.\d+[/\\]"
    r"|^<frozen "
    r"|[/\\]playhead[/\\](?:cli|encoding|hooks|host|launch|llm|recording|redact|replay|tape|workspace)[/\\]"
    r"|[/\\]playhead[/\\](?:clock|errors|event|events)\.py$"
)
_DEEPER = 4
_NUMBERED_ADDRESS = re.compile(r"\[address \d+\]")
_OF_UV = re.compile(
    rb"^(?:Using (?:C?Python|PyPy) |Creating virtual environment |Removed virtual environment "
    rb"|(?:Resolved|Prepared|Installed|Uninstalled|Audited|Downloading|Building|Built) \S"
    rb"|warning: Failed to hardlink |         If ).*\r?\n",
    re.MULTILINE,
)


def reduced(text: str) -> tuple[str, int]:
    """Return the text without frames of libraries, and their number. A traceback header without other frames is
    removed, too: a taped cause is raised without any frames.
    """
    if 'File "' not in text and "Traceback (" not in text:
        return text, 0
    kept: list[str] = []
    headers: list[str] = []
    ignored = 0
    lines = text.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r\n")
        at += 1
        if _HEADER.match(line):
            headers = [lines[at - 1]]
            continue
        frame = _FRAME.match(line)
        if frame is None:
            headers = []
            kept.append(lines[at - 1])
            continue
        source = at
        while at < len(lines) and _belongs(lines[at], frame["margin"]):
            at += 1
        # CPython 3.11 prints an empty line of markers if the frame was interrupted between two instructions.
        if source < at < len(lines) and not lines[at].strip():
            at += 1
        if _LIBRARY.search(frame["file"]):
            ignored += 1
            continue
        kept += headers
        headers = []
        kept.append(f'{frame["margin"]}  File "{frame["file"]}", in {frame["function"]}\n')
        # The first line is the code; the following lines mark a part of it, or say that it was repeated.
        kept += lines[source : min(at, source + 1)]
    return "".join(kept), ignored


def _belongs(line: str, margin: str) -> bool:
    """Return whether this line shows the code of the frame above it."""
    rest = line.removeprefix(margin)
    return rest.startswith((" " * _DEEPER, "  [Previous line repeated"))


# The number of progress messages depends on timing.
_OF_TIME = frozenset({"tool_progress", "task_progress", "thinking_tokens", "rate_limit_event"})
_TASK_LINES = frozenset({"task_started", "task_updated", "task_notification"})
_DURATIONS = ("_ms", "_ns", "Ms", "_seconds")
# Suffixes of the names of ids.
_IDS = ("_id", "_ids", "Id", "Ids", "uuid")


def difference(then: TapedRun, now: TapedRun) -> str | None:
    """Return the first line that the program printed differently."""
    if not _was_heard(then):
        return None
    if by_proxy(then):
        return _difference(then, now, ("stdout",), alike)
    if _is_joined(then) != _is_joined(now):
        return _joined_difference(then, now)
    return _difference(then, now, ("stdout", "stderr"), _same)


def ignored_frames(then: TapedRun, now: TapedRun) -> int:
    """Return how many frames of libraries in tracebacks were not compared."""
    return max(
        sum(reduced(_text(one, stream))[1] for stream in ("stdout", "stderr"))
        for one in (then, now)
    )


def _is_joined(recording: TapedRun) -> bool:
    """Return whether stdout and stderr went to the same place: `2>&1`."""
    begun = recording.run_start
    start = begun.data if begun is not None and isinstance(begun.data, dict) else {}
    output = start.get("output")
    return isinstance(output, dict) and "with stdout" in output.values()


def _joined_difference(then: TapedRun, now: TapedRun) -> str | None:
    """Compare a run with separate streams and a run with joined streams: `2>&1`. The joined lines must be those of the
    two streams, and each stream must have kept its order. The order between the two streams is not known.
    """
    apart, joined = (then, now) if _is_joined(now) else (now, then)
    if is_interleaved(
        _text(apart, "stdout"),
        _text(apart, "stderr"),
        _text(joined, "stdout") + _text(joined, "stderr"),
    ):
        return None
    lines = {one: _printed_lines(apart, one) for one in ("stdout", "stderr")}
    together = _printed_lines(joined, "stdout") + _printed_lines(joined, "stderr")
    separate = Counter(lines["stdout"] + lines["stderr"])
    before, after = separate, Counter(together)
    if apart is now:
        before, after = after, before
    for line in before - after:
        return f"output: {line[:200]!r} is missing"
    for line in after - before:
        return f"output: {line[:200]!r} is new"
    for stream, own in lines.items():
        left = iter(together)
        for line in own:
            if line not in left:  # searches on from the line found before
                return f"{stream}: {line[:200]!r} is at another place"
    return None


def _printed_lines(recording: TapedRun, stream: str) -> list[str]:
    """Return the lines of one stream. Addresses have no numbers: joined streams are numbered together."""
    text = _NUMBERED_ADDRESS.sub("[address]", _settled(recording, _text(recording, stream)))
    return reduced(text)[0].splitlines()


def _text(recording: TapedRun, stream: str) -> str:
    return _compared(recording, stream).decode("utf-8", "surrogateescape")


def _compared(recording: TapedRun, stream: str) -> bytes:
    """Return the output without the lines of uv, and those that HTTP libraries logged about their connections."""
    raw, lines = printed(recording.outputs, stream), recording.log_lines.get(stream)
    if _is_joined(recording):  # `2>&1`: the lines of stderr are in stdout
        lines = [line for one in recording.log_lines.values() for line in one]
    if _starts_with_uv(recording) and (stream == "stderr" or _is_joined(recording)):
        raw = _OF_UV.sub(b"", raw)
    if not lines:
        return raw
    left = Counter(line.encode("utf-8", "surrogateescape") for line in lines)
    kept = []
    for line in raw.splitlines(keepends=True):
        text = line.rstrip(b"\r\n")
        if left[text]:
            left[text] -= 1
        else:
            kept.append(line)
    return b"".join(kept)


def _starts_with_uv(recording: TapedRun) -> bool:
    begun = recording.run_start
    command = begun.data.get("command") if begun is not None and _is_dict(begun.data) else None
    return isinstance(command, list) and bool(command) and str(command[0]).split("/")[-1] == "uv"


def remarks(then: TapedRun, now: TapedRun) -> list[str]:
    """Differences in the output of a program with a clock of its own that do not count."""
    if not by_proxy(then):
        if not _was_heard(then) or not _differs_as_bytes(then, now):
            return []
        frames, moving = ignored_frames(then, now), _moving(then)
        found = []
        if frames:
            noun = "frame" if frames == 1 else "frames"
            was = "was" if frames == 1 else "were"
            found.append(f"{frames} {noun} of libraries in tracebacks {was} not compared.")
        if lines := sum(map(len, then.log_lines.values())):
            found.append(
                f"{lines} log lines of HTTP libraries about connections were not compared."
            )
        if moving:
            found.append(f"{moving} memory addresses, process ids and durations were not compared.")
        return found
    found = []
    if _difference(then, now, ("stdout",), _same) and not difference(then, now):
        found.append(
            "stdout differs in ids, times or the order of lines only: the program has its own clock."
        )
    if other := _difference(then, now, ("stderr",), alike):
        found.append(f"Not part of the verdict: {other}.")
    return found


def _differs_as_bytes(then: TapedRun, now: TapedRun) -> bool:
    return any(
        printed(then.outputs, stream) != printed(now.outputs, stream)
        for stream in ("stdout", "stderr")
    )


def by_proxy(recording: TapedRun) -> bool:
    """Return whether any program of this run used the proxy."""
    return any(call.event.data.get("library") == "proxy" for call in recording.calls)


def _was_heard(recording: TapedRun) -> bool:
    """Return whether the output was recorded: a program that records itself prints without the launcher, so its tape
    has no output.
    """
    begun = recording.run_start
    start = begun.data if begun is not None and isinstance(begun.data, dict) else {}
    return bool(recording.outputs) or "output" in start


def printed(outputs: list[Event], stream: str) -> bytes:
    return b"".join(
        as_bytes(event.data)
        for event in outputs
        if isinstance(event.data, dict) and event.data.get("stream") == stream
    )


def _difference(
    then: TapedRun, now: TapedRun, streams: Sequence[str], alike: Callable[[bytes, bytes], bool]
) -> str | None:
    for stream in streams:
        before, after = _compared(then, stream), _compared(now, stream)
        if before == after or alike(before, after):
            continue
        before, after = (_reduced(one, raw) for one, raw in ((then, before), (now, after)))
        if before == after:
            continue
        old, new = before.splitlines(), after.splitlines()
        for number in range(max(len(old), len(new))):
            left = old[number] if number < len(old) else b"(nothing)"
            right = new[number] if number < len(new) else b"(nothing)"
            if left != right and not alike(left, right):
                shown = (
                    left[:200].decode("utf-8", "replace"),
                    right[:200].decode("utf-8", "replace"),
                )
                return f"{stream} line {number + 1}: {shown[0]!r} → {shown[1]!r}"
        return f"{stream}: line endings differ"
    return None


def _reduced(recording: TapedRun, raw: bytes) -> bytes:
    text, _ = reduced(_settled(recording, raw.decode("utf-8", "surrogateescape")))
    return text.encode("utf-8", "surrogateescape")


def _settled(recording: TapedRun, text: str) -> str:
    return settled(text, _pids(recording))[0]


def _moving(recording: TapedRun) -> int:
    pids = _pids(recording)
    return sum(settled(_text(recording, one), pids)[1] for one in ("stdout", "stderr"))


def _pids(recording: TapedRun) -> frozenset[int]:
    """Return the ids of the processes of a run: those on its tape, and those that these have started."""
    known = [*recording.segments.values(), *filter(None, [recording.run_end])]
    found = [one.data.get("pid") for one in known if _is_dict(one.data)]
    for call in recording.calls:
        outcome = call.outcome
        if outcome is not None and _is_dict(outcome.data):
            found.append(outcome.data.get("pid"))
    return frozenset(one for one in found if type(one) is int and one > 1)


def same_text(recorded: TapedRun, replayed: TapedRun, before: bytes, after: bytes) -> bool:
    """Return whether the content of a file is the same, except for values that no program chooses."""
    try:
        texts = before.decode(), after.decode()
    except UnicodeDecodeError:
        return False
    return _settled(recorded, texts[0]) == _settled(replayed, texts[1])


def _is_dict(data: Any) -> bool:
    return isinstance(data, dict)


def _same(before: bytes, after: bytes) -> bool:
    return before == after


def alike(before: bytes, after: bytes) -> bool:
    """Return whether two outputs of a program with its own clock are the same, except for ids and times."""
    return Counter(_lines(before)) == Counter(_lines(after))


def _lines(raw: bytes) -> Iterator[str]:
    """Yield each line with ids, times and durations normalised."""
    values = [_parsed(line) for line in raw.decode("utf-8", "replace").splitlines()]
    slow = {value.get("task_id") for value in values if _is_slow_tool(value)}
    for value in values:
        if isinstance(value, dict):
            kinds = {value.get("type"), value.get("subtype")}
            if _OF_TIME & kinds or (value.get("task_id") in slow and _TASK_LINES & kinds):
                continue
        yield settled_text(_timeless(value))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line) if line.startswith("{") else line
    except ValueError:
        return line


def _is_slow_tool(value: Any) -> bool:
    """Return whether the line announces a slow tool: Claude Code announces a tool in the foreground as a task when it
    has run for some seconds.
    """
    return (
        isinstance(value, dict)
        and value.get("subtype") == "task_started"
        and value.get("is_backgrounded") is False
    )


def _timeless(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {
            name: _timeless(item, name)
            for name, item in value.items()
            if not (name.endswith(_DURATIONS) and isinstance(item, (int, float)))
        }
    if isinstance(value, list):
        return [_timeless(item, name) for item in value]
    if isinstance(value, str) and name.endswith(_IDS) and not VOLATILE.fullmatch(value):
        # An id in the agent's own form: convert it to a form that is renamed, and equal ids to equal ones.
        return str(uuid.uuid5(uuid.NAMESPACE_OID, value)) if any(map(str.isdigit, value)) else value
    return value
