"""Record and replay the transfers of libcurl's Python libraries: pycurl, and curl_cffi (sync and asyncio).

Each transfer is one HTTP call; redirects that libcurl follows belong to it. libcurl opens its own sockets, and
decompresses the body before Python sees it. So the tape has the decompressed body, and the header that names the
compression has another name there. Knows the numbers of libcurl's options, which both libraries share.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.http.curl_options import (
    HEADER,
    HEADER_DATA,
    INFOS,
    OBSERVED,
    RENAMED,
    WRITE,
    WRITE_DATA,
    CurlHandle,
    pair,
)
from playhead.hooks.http.exchange import (
    HttpAdapter,
    Request,
    call_of,
    cleaned,
    recording_deck,
)
from playhead.hooks.replacements import graft
from playhead.host.lean import wrapping
from playhead.recording.crossing import END, HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from playhead.hooks.http.exchange import Exchange
    from playhead.recording.crossing import Crossing

_handles: WeakKeyDictionary[Any, CurlHandle] = WeakKeyDictionary()


def _handle(curl: Any) -> CurlHandle:
    found = _handles.get(curl)
    if found is None:
        found = _handles[curl] = CurlHandle()
    return found


def hook_pycurl(module: ModuleType, patches: Patches) -> None:
    """`module` is pycurl."""
    need(module, "Curl", "CurlMulti", "error")
    kind = module.Curl
    library = _Library("pycurl", vars(kind))
    for name in ("setopt", "unsetopt", "perform", "getinfo", "reset"):
        graft(patches, kind, name, wrapping(getattr(library, name), vars(kind)[name]))
    for name in ("perform_rb", "perform_rs", "getinfo_raw"):
        if name in vars(kind):
            original = vars(kind)[name]
            graft(
                patches,
                kind,
                name,
                wrapping(_unsupported(original, f"pycurl.Curl.{name}"), original),
            )
    adds = vars(module.CurlMulti)["add_handle"]
    graft(
        patches,
        module.CurlMulti,
        "add_handle",
        wrapping(_unsupported(adds, "pycurl.CurlMulti"), adds),
    )
    patches.on_undo(_handles.clear)


def hook_curl_cffi(module: ModuleType, patches: Patches) -> None:
    """`module` is curl_cffi.curl."""
    kind = module.Curl
    need(kind, "setopt", "perform", "getinfo", "reset")
    library = _Library("curl_cffi", dict(vars(kind)))
    for name in ("setopt", "perform", "getinfo", "reset"):
        patches.replace(kind, name, partial(_instead, getattr(library, name)))
    patches.on_undo(_handles.clear)


def hook_curl_cffi_aio(module: ModuleType, patches: Patches) -> None:
    """`module` is curl_cffi.aio."""
    need(module, "AsyncCurl")
    patches.replace(module.AsyncCurl, "add_handle", _around_add_handle)


def _instead(made: Any, original: Any) -> Any:
    return made


def _unsupported(original: Any, what: str) -> Any:
    def method(*args: Any, **options: Any) -> Any:
        open_deck = recording_deck()
        if open_deck is not None:
            open_deck.unfollowed("http", what, "its transfers are not recorded")
        return original(*args, **options)

    return method


class _Library:
    """Our replacements for the methods of a handle, for one of the libraries."""

    def __init__(self, name: str, originals: Any) -> None:
        self.name = name
        names = ("setopt", "unsetopt", "perform", "getinfo", "reset")
        self._originals = {one: originals[one] for one in names if one in originals}
        if "perform" not in self._originals:
            raise NotAsExpected(f"{name} has no perform")
        self.setopt, self.unsetopt = self._setopt(), self._unsetopt()
        self.perform, self.getinfo, self.reset = self._perform(), self._getinfo(), self._reset()

    def _setopt(self) -> Callable[..., Any]:
        original = self._originals["setopt"]

        def setopt(curl: Any, option: Any, value: Any) -> Any:
            handle = _handle(curl)
            handle.options[int(option)] = value
            stream = OBSERVED.get(int(option))
            if stream is not None and value is not None:
                report = handle.take_body if stream == "body" else handle.take_header
                value = _observed(value, report, is_function=int(option) in (WRITE, HEADER))
            return original(curl, option, value)

        return setopt

    def _unsetopt(self) -> Callable[..., Any]:
        original = self._originals.get("unsetopt")

        def unsetopt(curl: Any, option: Any) -> Any:
            _handle(curl).options.pop(int(option), None)
            return None if original is None else original(curl, option)

        return unsetopt

    def _reset(self) -> Callable[..., Any]:
        original = self._originals["reset"]

        def reset(curl: Any) -> Any:
            _handles.pop(curl, None)
            return original(curl)

        return reset

    def _getinfo(self) -> Callable[..., Any]:
        original = self._originals["getinfo"]

        def getinfo(curl: Any, option: Any) -> Any:
            infos = _handle(curl).infos
            if infos is None or str(int(option)) not in infos:
                return original(curl, option)
            return infos[str(int(option))]

        return getinfo

    def _perform(self) -> Callable[..., Any]:
        original = self._originals["perform"]

        def perform(curl: Any, *args: Any, **options: Any) -> Any:
            open_deck = recording_deck()
            handle = _handle(curl)
            request = handle.request(self.name)
            call = None if open_deck is None else call_of(open_deck, request)
            if open_deck is None or call is None or handle.only_connects(self.name):
                return original(curl, *args, **options)
            self.prepare(curl, handle)
            go = partial(original, curl, *args, **options)
            return open_deck.perform(call, _Transfer(request, self, curl, go))

        return perform

    def prepare(self, curl: Any, handle: CurlHandle) -> None:
        """Collect the headers of the answer for the tape if the program has not set a target for them."""
        if not handle.options.get(HEADER_DATA) and not handle.options.get(HEADER):
            self._originals["setopt"](curl, HEADER, handle.take_header)
        handle.blocks, handle.is_headed, handle.infos = [], False, None

    def infos(self, curl: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number in INFOS:
            try:
                found[str(number)] = _as_text(self._originals["getinfo"](curl, number))
            except Exception:  # noqa: BLE001, S112  this libcurl does not know it
                continue
        return found


class _Transfer(HttpAdapter):
    """One transfer of a handle."""

    def __init__(self, request: Request, library: Any, curl: Any, go: Callable[[], Any]) -> None:
        super().__init__(request, rewrites=False)
        self._library, self._curl, self._go = library, curl, go
        self._of = _handle(curl)

    def live(self, crossing: Crossing) -> Any:
        self._of.exchange = self.begin(crossing)
        return self._go()

    def observe(self, crossing: Crossing, result: Any) -> Any:
        self._finish()
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        self._of.report_head()
        self._of.exchange = None
        self.exchange.failed(error, infos=self._library.infos(self._curl))

    def serve(self, crossing: Crossing) -> None:
        exchange = self.begin(crossing)
        self._of.infos = self._taped_infos(crossing)
        for point, stream, data in _taped(crossing):
            crossing.reach(point)
            self._give(exchange, stream, data)
        crossing.reach(END)
        self._end(exchange)

    async def live_async(self, crossing: Crossing) -> Any:
        self._of.exchange = self.begin(crossing)
        try:
            result = await self._go()
        except BaseException as error:
            self.failed(crossing, error)
            raise
        self._finish()
        return result

    async def serve_async(self, crossing: Crossing) -> None:
        exchange = self.begin(crossing)
        self._of.infos = self._taped_infos(crossing)
        for point, stream, data in _taped(crossing):
            await crossing.reach_async(point)
            self._give(exchange, stream, data)
        await crossing.reach_end_async()
        self._end(exchange)

    def _finish(self) -> None:
        self._of.report_head()
        self._of.exchange = None
        self.exchange.returned(infos=self._library.infos(self._curl), redirects=self._redirects())

    def _redirects(self) -> list[Any] | None:
        """Return the heads of the answers before the last one, redacted like the last one."""
        redactor = self.exchange.crossing.deck.recorder.redactor
        earlier = self._of.blocks[:-1]
        return [[one[0], cleaned(redactor, map(pair, one[1:]))] for one in earlier] or None

    def _give(self, exchange: Exchange, stream: str, data: Any) -> None:
        """Pass a taped head or piece to the program's own functions or files, and report it."""
        options = self._of.options
        if stream == "body":
            exchange.chunk(data)
            _write(options.get(WRITE) or options.get(WRITE_DATA), data)
            return
        target = options.get(HEADER) or options.get(HEADER_DATA)
        for block in data:
            for line in (*block, ""):
                _write(target, f"{line}\r\n".encode("latin-1"))
        head = exchange.taped.head if exchange.taped is not None else {}
        exchange.head(
            head["status"], head["reason"], head["http_version"], map(tuple, head["headers"])
        )

    def _taped_infos(self, crossing: Crossing) -> dict[str, Any]:
        infos = {} if crossing.taped is None else dict(crossing.taped.facts.get("infos") or {})
        if self._library.name != "curl_cffi":
            return infos
        return {name: _as_bytes(value) for name, value in infos.items()}

    def _end(self, exchange: Exchange) -> None:
        taped = exchange.taped
        if taped is None:
            raise AssertionError("only a taped transfer is served")
        if isinstance(taped.error, BaseException) and taped.how != "returned":
            exchange.failed(taped.error)
            raise taped.error
        if taped.how == "cut":
            exchange.cut()  # the run was killed here
        exchange.returned()


class _AsyncTransfer(_Transfer):
    """One transfer of a handle in an event loop: `live` and `serve` return an awaitable."""

    def live(self, crossing: Crossing) -> Any:
        return self.live_async(crossing)

    def serve(self, crossing: Crossing) -> Any:
        return self.serve_async(crossing)

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return result


def _around_add_handle(original: Callable[..., Any]) -> Callable[..., Any]:
    def add_handle(self: Any, curl: Any) -> Any:
        open_deck = recording_deck()
        handle = _handle(curl)
        request = handle.request("curl_cffi")
        call = None if open_deck is None else call_of(open_deck, request)
        if open_deck is None or call is None or handle.only_connects("curl_cffi"):
            return original(self, curl)
        library = _library_of_cffi()
        library.prepare(curl, handle)
        transfer = _AsyncTransfer(request, library, curl, lambda: original(self, curl))
        # Not `perform_async`: `add_handle` is not a coroutine function, and returns an awaitable.
        return open_deck.perform(call, transfer)

    return add_handle


def _library_of_cffi() -> Any:
    """Return the library of curl_cffi with the original methods, which are below the hooks."""
    kind = sys.modules["curl_cffi.curl"].Curl
    names = ("setopt", "perform", "getinfo", "reset")
    return _Library(
        "curl_cffi",
        {one: getattr(vars(kind)[one], "__wrapped__", vars(kind)[one]) for one in names},
    )


def _taped(crossing: Crossing) -> Iterator[tuple[int, str, Any]]:
    """Yield the point, the stream and the data of each part of a taped answer: the heads, then pieces of the body."""
    taped = crossing.taped
    if taped is None or not isinstance(taped.head, dict):
        return
    head = taped.head
    lines = [f"{head.get('http_version')} {head.get('status')} {head.get('reason')}".rstrip()]
    for name, value in head.get("headers") or ():
        lines.append(f"{str(name).removeprefix(RENAMED)}: {value}")
    redirects = taped.facts.get("redirects")
    earlier = [
        [status, *(f"{name}: {value}" for name, value in headers)]
        for status, headers in (redirects if isinstance(redirects, list) else ())
    ]
    yield HEAD, "head", [*earlier, lines]
    for index, piece in enumerate(taped.pieces):
        if piece.stream == "body":
            yield index, "body", piece.data


def _observed(value: Any, report: Callable[[bytes], None], *, is_function: bool) -> Any:
    if is_function:

        def function(data: bytes) -> Any:
            report(data)
            return value(data)

        return function
    return _Tee(value, report)


class _Tee:
    """Wraps a file, and reports the data that is written to it."""

    def __init__(self, file: Any, report: Callable[[bytes], None]) -> None:
        self._file, self._report = file, report

    def write(self, data: bytes) -> Any:
        self._report(data)
        return self._file.write(data)


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _as_bytes(value: Any) -> Any:
    """Encode text, because curl_cffi returns text as bytes."""
    if isinstance(value, list):
        return [_as_bytes(one) for one in value]
    return value.encode("latin-1") if isinstance(value, str) else value


def _write(target: Any, data: bytes) -> None:
    if target is None:
        return
    (target.write if hasattr(target, "write") else target)(data)
