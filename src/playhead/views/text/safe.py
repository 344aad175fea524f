"""Makes untrusted text safe for a terminal: control characters are made visible, never sent. Does not know runs."""

from __future__ import annotations

import re

from playhead.host.later import pattern

# Compiled where they are first used: every verb imports this module, and few print untrusted text.
# C0 except newline and tab, DEL, C1, and characters that reorder or hide text (CVE-2021-42574), tags
# included.
_CONTROL = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# CSI (colours, cursor), OSC (titles, links) and two-character escape sequences.
_SEQUENCE = pattern("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")
_SURROGATE = pattern("[\ud800-\udfff]")
# Spaces, and characters that look like one.
_BLANKS = pattern("[\\s\u115f\u1160\u2800\u3164\uffa0]{9,}")


def clean(text: str) -> str:
    """Make every control character visible, except newlines and tabs."""
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def one_line(text: str, width: int | None = None) -> str:
    """Return the text on one line, truncated to `width` with an ellipsis."""
    if width is None:
        return clean(" ".join(text.split()))
    most = width * 4 + 64  # enough to fill the line even if most of it is whitespace
    flat = clean(" ".join(text[:most].split()))
    if len(flat) > width or (len(text) > most and not text[most:].isspace()):
        return flat[: max(0, width - 1)] + "…"
    return flat


def whole_line(text: str) -> str:
    """Return the text on one line without hiding a part of it: for a command that the user is asked to approve.

    A line break ends a comment of a shell, so it must not look like a space; and many spaces would push the rest of a
    command out of sight.
    """
    short = _BLANKS.sub(lambda hit: f"⟨{len(hit.group()):,} blank characters⟩", text)
    return clean(short.replace("\r\n", "␍␊").replace("\n", "␊").replace("\t", "␉"))


def unstyled(text: str) -> str:
    """Remove escape sequences from the output of a program: colours are so common that showing them would
    make it unreadable.
    """
    plain = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    # A progress bar returns to the start of its line and overwrites it: keep the last text.
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


def styled(text: str) -> str:
    """Remove escape sequences except colours from the output of a program, for a view that shows colours."""
    plain = _SEQUENCE.sub(_colour, text).replace("\r\n", "\n")
    return "\n".join(_overwritten(line.rstrip("\r")) for line in plain.split("\n"))


def _colour(hit: re.Match[str]) -> str:
    """Return an escape sequence that sets a colour, else nothing."""
    found = hit.group()
    return found if found.startswith("\x1b[") and found.endswith("m") else ""


def _overwritten(line: str) -> str:
    """Return what a progress bar leaves of its line: the colours that it set, and the last text."""
    gone, _, last = line.rpartition("\r")
    return "".join(hit.group() for hit in _SEQUENCE.finditer(gone)) + last


def clean_json(text: str, *, terminal: bool) -> str:
    """Escape control characters of a JSON text for a terminal, else only surrogates. The value stays the same."""
    return (_CONTROL if terminal else _SURROGATE).sub(_escape, text)


def _visible(hit: re.Match[str]) -> str:
    code = ord(hit.group())
    if code < 0x20:
        return chr(0x2400 + code)  # ␛ for escape, ␇ for bell
    if code == 0x7F:
        return "␡"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape(hit: re.Match[str]) -> str:
    units = hit.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
