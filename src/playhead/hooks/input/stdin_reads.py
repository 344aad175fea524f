"""Record the reads of the run's stdin by `sys.stdin`, `input()` and `os.read`. Knows Python's own streams.

`sys.stdin` is rebuilt on a subclass of `FileIO`: iteration, `readline` and `buffer.read` are C code that ends in
`readinto` or `readall` of the raw file, so every way to read passes here. The objects above it have their usual types.
"""

from __future__ import annotations

import io
import os
import sys

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.input import input_slot
from playhead.hooks.replacements import like_builtin
from playhead.recording import deck
from playhead.recording.chunks import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.recording.crossing import Crossing

_STDIN = 0
# asyncio reads pipes with `os.read`; `asyncio_stdin` records those reads as one stream.
_OF_ASYNCIO = os.path.join("asyncio", "unix_events.py")


class _RunStdin(io.FileIO):
    """The raw file of stdin. A taped piece may be longer than the reader's buffer, because a placeholder stands
    for a secret: the rest waits in `_left`.
    """

    _left = b""

    def readinto(self, buffer: Any, /) -> int:
        target = memoryview(buffer).cast("B")
        data = self._next(len(target))
        target[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        left, self._left = self._left, b""
        return left + input_slot.read(super().readall, "read")

    def read(self, size: int | None = -1, /) -> bytes:
        return self.readall() if size is None or size < 0 else self._next(size)

    def _next(self, size: int) -> bytes:
        if not self._left:
            raw = super().read
            self._left = input_slot.read(lambda: raw(size) or b"", "read")
        data, self._left = self._left[:size], self._left[size:]
        return data


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is sys."""
    streams: Any = module
    old = streams.stdin
    if not input_slot.is_run_stdin(_STDIN) or type(old) is not io.TextIOWrapper:
        return
    raw = getattr(old.buffer, "raw", None)
    if type(raw) is not io.FileIO or raw.fileno() != _STDIN:
        raise NotAsExpected("sys.stdin does not read descriptor 0")
    made = _rebuilt(old)
    streams.stdin = made

    def undo() -> None:
        if streams.stdin is made:
            streams.stdin = old

    patches.on_undo(undo)


def _rebuilt(old: io.TextIOWrapper) -> io.TextIOWrapper:
    """Make `sys.stdin` as Python does at its start (`create_stdio` in pylifecycle.c)."""
    raw = _RunStdin(_STDIN, "rb", closefd=False)
    raw.name = "<stdin>"
    made = io.TextIOWrapper(
        io.BufferedReader(raw),
        encoding=old.encoding,
        errors=old.errors,
        newline=None,
        line_buffering=old.line_buffering,
    )
    made.mode = "r"  # type: ignore[misc]  # a plain attribute of the instance, set by `create_stdio`
    return made


def hook_builtins(module: ModuleType, patches: Patches) -> None:
    """Hook `input()`, which on a terminal reads in C and does not use `sys.stdin`."""
    need(module, "input")
    patches.replace(module, "input", like_builtin(_input))


def _input(original: Callable[..., str]) -> Callable[..., str]:
    def read_line(prompt: object = "", /) -> str:
        stdin: Any = sys.stdin
        if not (
            input_slot.is_terminal() and type(getattr(stdin, "buffer", None)) is io.BufferedReader
        ):
            return original(prompt)
        if type(stdin.buffer.raw) is not _RunStdin:
            return original(prompt)
        return _typed_line(original, str(prompt))

    return read_line


def _typed_line(original: Callable[..., str], prompt: str) -> str:
    """Read one line that a person types. The end of input is recorded as an empty read, as for other reads."""
    open_deck = input_slot.deck_for_read()
    if open_deck is None:
        return original(prompt)

    def live() -> bytes:
        try:
            return f"{original(prompt)}\n".encode("utf-8", "surrogateescape")
        except EOFError:
            return b""

    facts = {"via": "input", "prompt": prompt}
    call = deck.Call(boundary="input", name=input_slot.NAME, facts=facts)
    data: bytes = open_deck.perform(call, _LineAdapter(live, prompt))
    if not data:
        raise EOFError("EOF when reading a line")
    return data.decode("utf-8", "surrogateescape").rstrip("\n")


class _LineAdapter(input_slot.ReadAdapter):
    """Reads a line after a prompt. If stdin and stdout are terminals, Python does not print the prompt through
    `sys.stdout`, so the prompt is not in the recorded output. The outcome says whether this was so, and a replay does
    the same.
    """

    __slots__ = ("_prompt",)

    def __init__(self, live: Callable[[], bytes], prompt: str) -> None:
        super().__init__(live)
        self._prompt = prompt

    def observe(self, crossing: Crossing, result: bytes) -> bytes:
        crossing.returned(as_text(result), printed=not _is_terminal(sys.stdout))
        return result

    def serve(self, crossing: Crossing) -> bytes:
        printed = crossing.taped is not None and crossing.taped.facts.get("printed")
        data = super().serve(crossing)
        if printed:
            sys.stdout.write(self._prompt)
            sys.stdout.flush()
        elif _is_terminal(sys.stdout):
            sys.stdout.flush()
            os.write(1, self._prompt.encode("utf-8", "replace"))
        return data


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, ValueError):
        return False


def hook_os(module: ModuleType, patches: Patches) -> None:
    need(module, "read")
    patches.replace(module, "read", like_builtin(_os_read))


def _os_read(original: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    left = b""

    def read(fd: int, length: int, /) -> bytes:
        nonlocal left
        if fd != _STDIN or not input_slot.is_run_stdin(fd):
            return original(fd, length)
        if sys._getframe(2).f_code.co_filename.endswith(_OF_ASYNCIO):
            return original(fd, length)
        if not left:
            left = input_slot.read(lambda: original(fd, length), "os.read")
        data, left = left[:length], left[length:]
        return data

    return read
