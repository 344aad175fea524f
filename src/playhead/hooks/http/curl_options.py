"""Read the options of a libcurl handle: they describe its request, and the targets of its answer.

Knows libcurl's numbers; does not know pycurl or curl_cffi, or whether the answer is live or taped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.http.exchange import Request, recording_deck

if TYPE_CHECKING:
    from typing import Any

    from playhead.hooks.http.exchange import Exchange

_URL, _HEADERS, _METHOD, _AGENT, _COOKIE = 10002, 10023, 10036, 10018, 10022
_FIELDS, _COPIED_FIELDS, _READ_DATA, _READ = 10015, 10165, 10009, 20012
_POST, _UPLOAD, _PUT, _NO_BODY, _GET = 47, 46, 54, 44, 80
_FORM, _MIME, _DECOMPRESSED = 10024, 10269, 10102
_CONNECT_ONLY = 141
WRITE_DATA, WRITE, HEADER_DATA, HEADER = 10001, 20011, 10029, 20079
OBSERVED = {WRITE_DATA: "body", WRITE: "body", HEADER_DATA: "head", HEADER: "head"}
# The values of a finished transfer that programs read with `getinfo`: status, address, counts, times and redirects.
INFOS = (
    *(2097154, 1048577, 1048594, 2097198, 2097172, 2097163, 1048607, 1048608, 2097192, 2097194),
    *(3145731, 3145732, 3145733, 3145734, 3145744, 3145745, 3145747, 3145735, 3145736, 3145743),
)
# The header that names the compression, and the prefix that it gets on the tape, where the body is decompressed.
CODING, RENAMED = "content-encoding", "x-playhead-"


class CurlHandle:
    """The options of one handle, and its transfer."""

    def __init__(self) -> None:
        self.options: dict[int, Any] = {}
        self.exchange: Exchange | None = None
        self.blocks: list[list[str]] = []
        self.is_headed = False
        # The results of `getinfo` for the transfer that was served last.
        self.infos: dict[str, Any] | None = None

    def request(self, library: str) -> Request:
        options = self.options
        headers = [pair(one) for one in options.get(_HEADERS) or ()]
        for number, name in ((_AGENT, "user-agent"), (_COOKIE, "cookie")):
            if options.get(number):
                headers.append((name, text(options[number])))
        body = options.get(_COPIED_FIELDS, options.get(_FIELDS))
        raw = body.encode() if isinstance(body, str) else None if body is None else bytes(body)
        facts = None
        if raw is None and any(options.get(one) for one in (_READ_DATA, _READ, _FORM, _MIME)):
            # The content of an upload is not known before it is sent.
            facts = {"upload": True}
        return Request(
            library, self._method(raw), text(options.get(_URL, "")), headers, raw, None, facts
        )

    def only_connects(self, library: str) -> bool:
        """Return whether libcurl connects and the program talks over the connection afterwards, as WebSockets of
        curl_cffi do. That is not recorded: a hole on the tape, and refused in a replay.
        """
        open_deck = recording_deck()
        if open_deck is None or not self.options.get(_CONNECT_ONLY):
            return False
        why = "messages over connections of libcurl are not recorded"
        open_deck.unfollowed("http", f"a WebSocket of {library}", why)
        return True

    def _method(self, body: bytes | None) -> str:
        options = self.options
        if options.get(_METHOD):
            return text(options[_METHOD])
        if options.get(_NO_BODY):
            return "HEAD"
        if options.get(_UPLOAD) or options.get(_PUT):
            return "PUT"
        return "POST" if body is not None or options.get(_POST) or options.get(_FORM) else "GET"

    def take_header(self, line: bytes) -> None:
        """Collect a line of an answer's head. Every redirect has its own head."""
        text = line.decode("latin-1").rstrip("\r\n")
        if text.startswith("HTTP/"):
            self.blocks.append([text])
        elif text and self.blocks:
            self.blocks[-1].append(text)

    def take_body(self, data: bytes) -> None:
        if self.exchange is not None:
            self.report_head()
            self.exchange.chunk(bytes(data))

    def report_head(self) -> None:
        """Report the head of the last answer. Called when only its body can follow."""
        exchange = self.exchange
        if exchange is None or self.is_headed or not self.blocks:
            return
        self.is_headed = True
        version, _, rest = self.blocks[-1][0].partition(" ")
        status, _, reason = rest.partition(" ")
        pairs = [pair(one) for one in self.blocks[-1][1:]]
        if self.options.get(_DECOMPRESSED) is not None:
            pairs = [
                (RENAMED + name if name.lower() == CODING else name, value) for name, value in pairs
            ]
        exchange.head(int(status) if status.isdigit() else 0, reason, version, pairs)


def pair(line: Any) -> tuple[str, str]:
    name, _, value = text(line).partition(":")
    return name.strip(), value.strip()


def text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
