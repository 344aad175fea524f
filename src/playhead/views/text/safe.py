"""Taped text made fit for a terminal. A tape is a stranger's: its control characters are shown,
never sent. Knows characters; nothing of runs.
"""

from __future__ import annotations

import re

# C0 without newline and tab, DEL, C1, and the characters that reorder or hide what is read
# (CVE-2021-42574), tags included: none of them has business on a terminal that shows somebody
# else's text.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# CSI (colours, cursor), OSC (titles, links) and the two-letter ones.
_SEQUENCE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with every control character made visible; lines and tabs stay."""
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n"))


def one_line(text: str, width: int | None = None) -> str:
    """`text` on one line, cut at `width` with an ellipsis."""
    if width is not None:
        text = text[: width * 4 + 64]  # enough to fill the line, however much of it is space
    flat = clean(" ".join(text.split()))
    if width is not None and len(flat) > width:
        return flat[: max(0, width - 1)] + "…"
    return flat


def unstyled(text: str) -> str:
    """What a program printed without the sequences that only style it or move about: colours are
    so common in output that their pictures would bury the words.
    """
    plain = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    # A progress bar goes back to the start of its line; what it wrote last is what was seen.
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


def clean_json(text: str, *, terminal: bool) -> str:
    """JSON that means the same, its control characters spelled out where a terminal reads it."""
    return (_CONTROL if terminal else _SURROGATE).sub(_escape, text)


def _picture(hit: re.Match[str]) -> str:
    code = ord(hit.group())
    if code < 0x20:
        return chr(0x2400 + code)  # ␛ for escape, ␇ for bell
    if code == 0x7F:
        return "␡"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape(hit: re.Match[str]) -> str:
    units = hit.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
