"""Tracebacks in a program's output, reduced to what they mean. Pure; knows how Python prints them.

A replay raises a taped exception from other frames than the client library did: its transport does not
run. So only the program's own frames are compared, with the type, the message and the chain of exceptions.
Line numbers do not count: a line above may have changed.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^(?P<margin>[\s|+-]*)Traceback \(most recent call last\):$")
_FRAME = re.compile(
    r'^(?P<margin>[\s|]*?)  File "(?P<file>[^"]*)", line \d+(?:, in (?P<function>.*))?$'
)
_LIBRARY = re.compile(
    r"[/\\](?:site-packages|dist-packages)[/\\]"
    r"|[/\\]lib[/\\]python3\.\d+[/\\]"
    r"|^<frozen "
    r"|[/\\]playhead[/\\](?:cli|encoding|hooks|host|launch|recording|replay|tape)[/\\]"
)
_DEEPER = 4


def reduced(text: str) -> tuple[str, int]:
    """The text without frames of libraries, and how many there were. Headers of tracebacks that have no
    other frames go with them: a taped cause is raised without any.
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
        if _LIBRARY.search(frame["file"]):
            ignored += 1
            continue
        kept += headers
        headers = []
        kept.append(f'{frame["margin"]}  File "{frame["file"]}", in {frame["function"]}\n')
        # The first line is the code; what follows marks a part of it, or repeats itself.
        kept += lines[source : min(at, source + 1)]
    return "".join(kept), ignored


def _belongs(line: str, margin: str) -> bool:
    """Whether this line shows the code of the frame above it."""
    rest = line.removeprefix(margin)
    return rest.startswith((" " * _DEEPER, "  [Previous line repeated"))
