"""What the proxy costs a program that talks through it, beside talking to the server itself.

    python -m bench.proxy [--rounds 200] [--large 1024]

Server, proxy and client are three processes. The proxy writes a full, redacted tape. Within a round
both ways are gone once, in turn. Goals: the first byte of a stream within 2 ms of bare; 50 streams at
once, at the pace of a model, at 0.9 of bare throughput or better; memory flat on a stream of 1 GB.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.report import put_table
from playhead import clock

STREAMS = 50
EVENTS = 200
EVENT = b'event: delta\ndata: {"text": "a few words of an answer "}\n\n'
_PROSE = (EVENT * (65536 // len(EVENT) + 1))[:65536]
_PIECE = b"%x\r\n%b\r\n" % (len(_PROSE), _PROSE)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Answering(asyncio.Protocol):
    """`/sse/COUNT/GAP_MS` in so many chunks; `/large/MIB` as fast as it is taken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.free = asyncio.Event()
        self.free.set()

    def pause_writing(self) -> None:
        self.free.clear()

    def resume_writing(self) -> None:
        self.free.set()

    def data_received(self, data: bytes) -> None:
        _, kind, count, *gap = data.split(b" ", 2)[1].decode().split("/")
        large = kind == "large"
        self.task = asyncio.ensure_future(
            self.pour(int(count) * 16) if large else self.stream(int(count), int(gap[0]) / 1000)
        )

    async def stream(self, count: int, gap: float) -> None:
        self.transport.write(_HEAD)
        for _ in range(count):
            await self.free.wait()
            self.transport.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
            await asyncio.sleep(gap)
        self.transport.write(b"0\r\n\r\n")

    async def pour(self, pieces: int) -> None:
        self.transport.write(_HEAD)
        for _ in range(pieces):
            await self.free.wait()
            self.transport.write(_PIECE)
        self.transport.write(b"0\r\n\r\n")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def started(*argv: str) -> Iterator[tuple[int, int]]:
    """The port that a process of ours prints, and its pid."""
    with subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        told = json.loads(line)
        yield (told["port"] if isinstance(told, dict) else told), process.pid
        process.terminate()
        process.wait()


async def first_byte(port: int) -> float:
    """Milliseconds from the request to the first byte of the answer, on a connection that stands."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    took = 0.0
    for _ in range(2):  # the first is to connect
        began = clock.mono_ns()
        writer.write(b"GET /sse/1/0 HTTP/1.1\r\nHost: bench\r\n\r\n")
        await reader.read(1)
        took = (clock.mono_ns() - began) / 1e6
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    return took


async def read_all(port: int, target: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    size, tail = 0, b""
    while not tail.endswith(b"0\r\n\r\n"):
        data = await reader.read(1 << 18)
        size, tail = size + len(data), (tail + data)[-8:]
    writer.close()
    return size


async def throughput(port: int, gap_ms: int) -> float:
    """Bytes a second over all streams."""
    began = clock.mono_ns()
    target = f"/sse/{EVENTS}/{gap_ms}"
    sizes = await asyncio.gather(*(read_all(port, target) for _ in range(STREAMS)))
    return sum(sizes) / ((clock.mono_ns() - began) / 1e9)


def memory(pid: int) -> tuple[float, float]:
    """What the process holds now and has held at most, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    told = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(int(told[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]  # two names, two numbers


async def measure(direct: int, proxied: int, pid: int, options: argparse.Namespace) -> int:
    waits: dict[int, list[float]] = {direct: [], proxied: []}
    for _ in range(options.rounds):
        for port, found in waits.items():
            found.append(await first_byte(port))
    bare, through = (statistics.median(one) for one in waits.values())
    rows = [
        f"| first byte of a stream, ms | {bare:.2f} | {through:.2f} | +{through - bare:.2f} ms |"
    ]
    missed = through - bare >= 2
    for gap, name in ((20, "at the pace of a model"), (0, "as fast as they go")):
        rates: dict[int, list[float]] = {direct: [], proxied: []}
        for _ in range(3):
            for port, rate in rates.items():
                rate.append(await throughput(port, gap))
        one, other = (statistics.median(found) / 1e6 for found in rates.values())
        rows.append(f"| 50 streams {name}, MB/s | {one:.2f} | {other:.2f} | {other / one:.2f} |")
        missed = missed or (gap > 0 and other / one < 0.9)
    before, _ = memory(pid)
    began = clock.mono_ns()
    size = await read_all(proxied, f"/large/{options.large}")
    took = (clock.mono_ns() - began) / 1e9
    _, most = memory(pid)
    rows.append(
        f"| one stream of {size / 2**30:.1f} GiB, MiB held | {before:.0f} | {most:.0f} | {size / took / 1e6:.0f} MB/s |"
    )
    missed = missed or most - before > 32
    table = "\n".join(["| | bare | proxy | |", "|---|---|---|---|", *rows])
    print(table)
    put_table("proxy", table)
    return int(missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--large", type=int, default=1024, metavar="MIB")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return 0
    with tempfile.TemporaryDirectory() as store, started("-m", "bench.proxy", "--serve") as server:
        upstream = f"http://127.0.0.1:{server[0]}"
        words = ["proxy", "--record", "--json", "--store", store, "--upstream", upstream]
        with started("-m", "playhead", *words) as (port, pid):
            return asyncio.run(measure(server[0], port, pid, options))


if __name__ == "__main__":
    sys.exit(main())
