"""Show a running loop: progress on stderr, the agent's text on stdout. Knows text streams; does not know what is
recorded.

Prints nothing that a replay would print differently, such as times of its own clock.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from typing import TextIO

from playhead.loop.iteration import Iteration
from playhead.loop.session import Session
from playhead.transcripts import ProgressLine, StreamSummary

_MARKS = {"tool": "→", "failure": "✗", "retry": "↻"}


class Progress:
    """The progress of one session. `quiet`: only the agent's text.

    The command writes to stderr at unpredictable moments. In a recorded loop the replay compares the output line by
    line, so our lines wait until the command has ended; a terminal gets them at once, and they are not recorded.
    """

    def __init__(
        self, *, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        self._quiet = quiet
        self._out = out if out is not None else sys.stdout
        self._err = err if err is not None else sys.stderr
        self.on_terminal = _is_terminal(self._err)
        self.complaint = ""
        self._waiting: list[str] | None = None
        self._words = codecs.getincrementaldecoder("utf-8")("replace")
        self._complaints = codecs.getincrementaldecoder("utf-8")("replace")
        # Bytes that may be the beginning of an agent's stream.
        self._held = b""
        self._plain = self._within_line = False

    def begin(self, iteration: Iteration) -> None:
        self._held, self._plain, self.complaint = b"", False, ""
        recorded = iteration.session.recorded
        steady = recorded is not None and not recorded.calls and not self.on_terminal
        self._say(f"● {iteration.session.name} · {iteration.name}")
        self._waiting = [] if steady else None

    def heard(self, raw: bytes, glances: list[ProgressLine], *, is_agent: bool) -> None:
        """Show a piece of output: the text of an agent, or a program's own output."""
        if is_agent:
            self._held, self._plain = b"", False
            for glance in glances:
                self._glance(glance)
            return
        self._held += raw
        begins_so = self._held.lstrip()[:1] in (b"", b"{")
        if self._plain or not begins_so or b"\n" in self._held:
            self._plain = True
            self._print(self._words.decode(self._held))
            self._held = b""

    def complained(self, raw: bytes) -> None:
        """Print what the command writes to stderr; called from any thread."""
        text = self._complaints.decode(raw)
        lines = text.strip().splitlines()
        self.complaint = _one_line(lines[-1]) if lines else self.complaint
        _write(self._err, text)

    def end(self, iteration: Iteration) -> None:
        if self._held and not iteration.is_agent:
            self._print(self._words.decode(self._held, final=True))
        self._held = b""
        self._words.reset()
        self._complaints.reset()
        self._end_line()
        lines, self._waiting = self._waiting or [], None
        for line in lines:
            self._say(line)
        decision = iteration.decision
        if decision is None:
            return
        failed = decision.word == "error"
        parts = [f"{'✗' if failed else '✓'} {iteration.name}", decision.word]
        if decision.reason:
            parts.append(_one_line(decision.reason))
        if iteration.outline is not None:
            parts += _figures(iteration.outline)
        parts.append(_lasted(iteration.took_ns))
        self._say(" · ".join(parts))

    def finish(self, session: Session) -> None:
        state = session.state
        count = f"{state.total} iteration{'' if state.total == 1 else 's'}"
        parts = [f"● {session.name}", session.status, count]
        if session.status in ("error", "interrupted"):
            parts.append("continue with --resume")
        self._say(" · ".join(parts))

    def _glance(self, glance: ProgressLine) -> None:
        if glance.kind == "delta":
            self._print(glance.text)
            self._within_line = not glance.text.endswith("\n")
            return
        self._end_line()
        if glance.kind == "text":
            self._print(glance.text.rstrip("\n") + "\n")
        elif glance.kind in _MARKS and glance.text:
            line = f"  {_MARKS[glance.kind]} {_one_line(glance.text)}"
            if self._waiting is None:
                self._say(line, past=True)
            else:
                self._waiting.append(line)

    def _end_line(self) -> None:
        if self._within_line:
            self._print("\n")
            self._within_line = False

    def _say(self, line: str, *, past: bool = False) -> None:
        if self._quiet:
            return
        if past and self.on_terminal:
            _write_past(self._err, line + "\n")
        else:
            _write(self._err, line + "\n")

    def _print(self, text: str) -> None:
        _write(self._out, text)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False


def _write_past(stream: TextIO, text: str) -> None:
    """Write to the terminal itself, bypassing the stream's `write`, which may be hooked."""
    with suppress(OSError, ValueError):
        stream.flush()
        os.write(stream.fileno(), text.encode(stream.encoding, "replace"))


def _figures(outline: StreamSummary) -> list[str]:
    parts = []
    if outline.tools:
        parts.append(f"{outline.tools:,} tool call{'' if outline.tools == 1 else 's'}")
    tokens = outline.usage.get("input_tokens", 0) + outline.usage.get("output_tokens", 0)
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if outline.cost_usd is not None:
        parts.append(f"${outline.cost_usd:.4f}")
    return parts


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        return  # the reader has closed the pipe: the loop continues
    except UnicodeEncodeError:
        stream.write(text.encode("ascii", "replace").decode())


def _one_line(text: str) -> str:
    """Shorten a text to one line for display, without characters that control the terminal."""
    said = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return said if len(said) <= 100 else said[:99] + "…"


def _lasted(took_ns: int) -> str:
    seconds = took_ns / 1e9
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
