"""Record generated HTTP exchanges twice, with the native core and in Python, and compare the tapes byte by byte. Knows
how to make exchanges with a secret of every rule in every place; the texts come from `differential`.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.native.differential import ALNUM, REDACTED_VARIABLES, text_of, without_core

from playhead import clock
from playhead.hooks.http.exchange import STREAMED, HttpAdapter, Request, call_of, recording_deck
from playhead.recording import chunks, deck
from playhead.recording.deck import Deck
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor, shapes

_HEADERS = ("Authorization", "X-Api-Key", "Cookie", "Accept", "User-Agent", "X-Note", "Referer")
_ANSWERED = ("Content-Type", "Set-Cookie", "X-Request-Id", "Location", "Server")
_ADDRESSES = (
    "https://api.openai.com/v1/chat/completions",
    "https://api.anthropic.com/v1/messages",
    "http://127.0.0.1:8080/v1/things",
    "https://me:pass@example.com/a/b",
    "https://hooks.slack.com/services/T0/B0/" + "a1B2" * 6,
)


class _Announced(HttpAdapter):
    """A client that returns its exchange, so that the caller reports the answer."""

    def live(self, crossing: Any) -> Any:
        return self.begin(crossing)

    def observe(self, crossing: Any, result: Any) -> Any:
        return result


def _header_value(rng: random.Random) -> str:
    """Header values have no line ends."""
    return text_of(rng).replace("\n", " ").replace("\r", " ")


def _secret_of_rule(number: int, rng: random.Random) -> str:
    """A secret of the next shape of a key: so many exchanges in a row have one of each."""
    _, starts, _ = shapes.SHAPES[number % len(shapes.SHAPES)]
    return rng.choice(starts.split()) + "".join(rng.choices(ALNUM, k=rng.choice((24, 36, 40, 64))))


def _body(number: int, rng: random.Random) -> Any:
    choice = rng.random()
    content = f"{text_of(rng)} {_secret_of_rule(number, rng)}" if number % 3 else text_of(rng)
    if choice < 0.5:
        history = [{"role": "user", "content": content}, {"role": "tool", "content": text_of(rng)}]
        made = {"model": "gpt-6", "messages": history[: rng.randint(1, 2)]}
        return json.dumps(made, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if choice < 0.6:
        return f"a=1&password={content}".encode()
    if choice < 0.7:
        return content.encode()
    if choice < 0.75:
        return rng.randbytes(rng.randint(1, 90)) + content.encode()
    return rng.choice((b"", None, b"{}", STREAMED))


def _exchange(number: int, rng: random.Random) -> None:
    url = rng.choice(_ADDRESSES)
    if rng.random() < 0.4:
        url += rng.choice(("?key=", "?q=", "?code=", "#")) + _header_value(rng).replace(" ", "+")
    names = rng.sample(_HEADERS, rng.randint(0, 4))
    headers = [(name, _header_value(rng)) for name in names]
    library = rng.choice(("httpx", "requests", "aiohttp"))
    request = Request(library, rng.choice(("POST", "GET", "PUT")), url, headers, _body(number, rng))
    opened = recording_deck()
    assert opened is not None
    exchange = opened.perform(call_of(opened, request), _Announced(request))
    answered = [(name, _header_value(rng)) for name in rng.sample(_ANSWERED, rng.randint(0, 3))]
    exchange.head(rng.choice((200, 429, 500)), "OK", "HTTP/1.1", answered)
    for _ in range(rng.choice((0, 1, 1, 3))):
        # Cut anywhere: a secret may lie on both sides of a border between two chunks.
        answer = f"data: {text_of(rng)}{_secret_of_rule(number, rng)}\n\n".encode()
        cut = rng.randrange(len(answer))
        exchange.chunk(answer[:cut])
        exchange.chunk(answer[cut:])
    if rng.random() < 0.95:
        exchange.returned()
    else:
        exchange.failed(ConnectionResetError(104, text_of(rng)))


@contextmanager
def _counted_time() -> Iterator[None]:
    """Each reading of the clock is a millisecond after the previous one, so that two recordings have equal times."""
    now = [1_800_000_000_000_000_000]

    def reading() -> int:
        now[0] += 1_000_000
        return now[0]

    clocks = (clock.wall_ns, clock.mono_ns)
    with ExitStack() as patches:
        # A thread would write waiting chunks at moments of its own choice.
        patches.enter_context(mock.patch.object(chunks, "_flusher", mock.Mock()))
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "playhead":
                for one in ("wall_ns", "mono_ns"):
                    if vars(module).get(one) in clocks:
                        patches.enter_context(mock.patch.object(module, one, reading))
        yield


def _tape(folder: Path, count: int, seed: int) -> bytes:
    folder.mkdir()
    rng = random.Random(seed)
    redactor = Redactor(key=b"k" * 32, variables=REDACTED_VARIABLES)
    with _counted_time():
        recorder = Recorder(run=folder, run_id="run", who="test", redactor=redactor)
        opened = Deck(recorder)
        deck.activate(opened)
        try:
            for number in range(count):
                _exchange(number, rng)
        finally:
            recorder.close()
            deck.deactivate(opened)
    (segment,) = folder.glob("tape-*.jsonl")
    return segment.read_bytes()


def compare_exchanges(folder: Path, count: int, seed: int) -> int:
    """Compare the tapes of `count` exchanges; return how many secrets were redacted."""
    native = _tape(folder / "native", count, seed)
    with without_core():
        python = _tape(folder / "python", count, seed)
    for ours, theirs in zip(native.splitlines(), python.splitlines(), strict=True):
        assert ours == theirs, (ours, theirs)
    blobs = [
        sorted(one.name for one in (folder / made).rglob("*") if one.is_file())
        for made in ("native", "python")
    ]
    assert blobs[0] == blobs[1]
    return native.count(b"redacted")
