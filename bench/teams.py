"""Shared stores and the catalogue in PostgreSQL: `python -m bench.teams [--gigabytes 1] [--view 1] [--runs 1000000]`.

Pushes a large run to an S3 server on this machine, beside the same bytes sent by obstore alone; opens a run of that size
that only the server has, in `show` and in the viewer; then fills a catalogue in a
PostgreSQL server with rows as reading tapes leaves them, and asks it what people ask.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import text
from starlette.testclient import TestClient

from playhead import clock
from playhead.library import engine
from playhead.library.postgres import PostgresDatabase
from playhead.library.search import Search, query
from playhead.library.server_rows import ServerRows
from playhead.remote.objects import ObjectFolder
from playhead.remote.partial_runs import Connections
from playhead.remote.pushing import push
from playhead.remote.run_cache import open_run
from playhead.tape.format import FORMAT_VERSION, SEALED_FILE, close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reading.partial_run import connect_with
from playhead.tape.sealed.seal import seal
from playhead.views.web.api.api_app import app

DAY_NS = 86_400 * 10**9
NEWEST_NS = 1_794_600_000 * 10**9
STEP_NS = 86 * 10**6 * 1000  # a thousand a day


def seconds(work: Callable[[], Any]) -> float:
    began = clock.mono_ns()
    work()
    return (clock.mono_ns() - began) / 1e9


def bench_push(folder: Path, size: int) -> list[list[str]]:
    """Best of three each, in turns: the server is a process of this machine, too."""
    run = folder / "store" / "runs" / "large"
    run.mkdir(parents=True)
    write_manifest(run, Manifest(run="large", status="ok"))
    # In payloads of 64 MiB: whatever is over 64 KiB is not on the tape itself.
    parts = [run / "blobs" / "00" / f"{number:064x}" for number in range(max(1, size // 2**26))]
    parts[0].parent.mkdir(parents=True)
    for path in parts:
        path.write_bytes(os.urandom(size // len(parts)))
    raw, own = [], []
    with running_s3(folder) as environ:
        library: Any = import_module("obstore")
        for number in range(3):
            target: Any = ObjectFolder(f"s3://tapes/raw-{number}", environ)
            store = target._store  # noqa: SLF001  obstore alone
            raw.append(seconds(lambda: _put_all(library, store, parts)))  # noqa: B023  called at once
            remote = ObjectFolder(f"s3://tapes/own-{number}", environ)
            own.append(seconds(lambda: push(run, remote)))  # noqa: B023  called at once
    mega = size / 1e6
    share = min(raw) / min(own)
    return [
        ["obstore put alone", f"{min(raw):.2f} s, {mega / min(raw):.0f} MB/s", ""],
        [
            "playhead push",
            f"{min(own):.2f} s, {mega / min(own):.0f} MB/s",
            f"{share:.0%} (goal 80 %)",
        ],
    ]


@contextmanager
def running_s3(folder: Path) -> Iterator[dict[str, str]]:
    """An S3 server with the bucket `tapes`; yields the environment of its clients."""
    serving = [shutil.which("moto_server") or "moto_server", "-H", "127.0.0.1", "-p", "5559"]
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with subprocess.Popen(serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _make_bucket()
            yield {**keys, "HOME": str(folder), "AWS_ENDPOINT_URL": "http://127.0.0.1:5559"}
        finally:
            server.terminate()


def bench_view(folder: Path, size: int) -> list[list[str]]:
    """First views of a run that only the shared store has: `show` as a command, then the page of the viewer."""
    run = _large_run(folder, size)
    with running_s3(folder) as more:
        environ = {**os.environ, **more, "PLAYHEAD_REMOTE": "s3://tapes/view"}
        push(run, ObjectFolder("s3://tapes/view", environ))
        shown: list[float] = []
        for number in range(3):
            environ["PLAYHEAD_HOME"] = str(folder / f"reader-{number}")
            argv = [sys.executable, "-m", "playhead", "show", run.name]
            show = partial(subprocess.run, argv, check=True, capture_output=True, env=environ)
            shown.append(seconds(show))
        fetched = _size_of(folder / "reader-0")
        connect_with(Connections(environ).connect)
        viewed = []
        for number in range(3):
            home = folder / f"viewer-{number}"
            viewed.append(seconds(lambda: _first_view(run.name, environ, home)))  # noqa: B023  called at once
    mega = (run / SEALED_FILE).stat().st_size / 1e6
    page = _size_of(folder / "viewer-0")
    return [
        [
            f"`show` of a remote run of {mega:,.0f} MB",
            f"{min(shown):.2f} s, {fetched / 1e6:.1f} MB",
            "1.5 s, 8 MB",
        ],
        [
            "its first page in the viewer",
            f"{min(viewed):.2f} s, {page / 1e6:.1f} MB",
            "1.5 s, 8 MB",
        ],
    ]


def _first_view(run: str, environ: Mapping[str, str], home: Path) -> None:
    path = open_run(run, ObjectFolder("s3://tapes/view", environ), home)
    client = TestClient(app(path.parent.parent), base_url="http://localhost")
    found = client.get(f"/api/recordings/{run}?first=4000").json()
    if not found["partial"]["events"]:
        raise SystemExit("the viewer has no events")


def _size_of(folder: Path) -> int:
    """Bytes on the disk: what was fetched, in blocks of the file system."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _large_run(folder: Path, size: int) -> Path:
    """A sealed run whose tape has about this size: tool calls with texts of 20 KB that hardly compress."""
    run = folder / "large" / "runs" / "large"
    run.mkdir(parents=True)
    noise = random.Random(1)
    seq = crc = 0
    with (run / "tape-1.jsonl").open("wb") as file:

        def add(kind: str, data: Any) -> None:
            nonlocal seq, crc
            members = {
                "seq": seq,
                "kind": kind,
                "wall": NEWEST_NS + seq,
                "mono": seq + 1,
                "pid": 1,
                "thread": 1,
            }
            members |= {
                "lane": "main",
                "at": "agent.py:1 run",
                "who": "agent",
                "parent": 0,
                "data": data,
            }
            line, crc = close_line(json.dumps(members, separators=(",", ":")).encode()[:-1], crc)
            file.write(line)
            seq += 1

        add("segment.start", {"format": FORMAT_VERSION, "run": "large", "generation": 0})
        add("run.start", {"run": "large", "name": "large", "resumed": False})
        while file.tell() * 0.76 < size:
            call = {"boundary": "tool", "name": "read_file", "request": {"arguments": {"n": seq}}}
            add("call", call)
            value = base64.b64encode(noise.randbytes(15_000)).decode()
            add("outcome", {"call": seq - 1, "how": "returned", "took_ns": 1000, "value": value})
        add("run.end", {"status": "ok", "error": None, "took_ns": seq})
        add("segment.end", {"events": seq + 1, "lost": 0})
    started = clock.iso(NEWEST_NS)
    write_manifest(
        run, Manifest(run="large", name="large", status="ok", started_at=started, events=seq)
    )
    seal(run)
    return run


def _put_all(library: Any, store: Any, parts: list[Path]) -> None:
    for path in parts:
        with path.open("rb") as file:
            library.put(store, path.name, file)


def _make_bucket() -> None:
    for _ in range(200):
        try:
            connection = HTTPConnection("127.0.0.1", 5559)
            connection.request("PUT", "/tapes")
            connection.getresponse().read()
        except OSError:
            clock.sleep(0.1)
        else:
            return


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """A server of our own, with the settings of Debian but for its folder."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    other: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        other = {"user": "postgres"}
    data = str(folder / "data")

    def run(name: str, *words: str) -> None:
        argv = [str(programs / name), "-D", data, *words]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=folder, **other)

    run("initdb", "-A", "trust", "-U", "playhead", "--no-sync")
    run(
        "pg_ctl",
        "-w",
        "-l",
        str(folder / "log"),
        "-o",
        f"-k {folder} -c listen_addresses=''",
        "start",
    )
    try:
        yield f"postgresql+psycopg://playhead@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-m", "immediate", "-w", "stop")


FILL = """
INSERT INTO runs SELECT {at}, 'run-' || n, 's', {at}, CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'ok' END, false,
  '/srv/shop-' || n % 7, 'agent-' || n % 40, NULL, false, false, 1.5, NULL, 'state', 1010, 0.003, 0, 0
  FROM generate_series(1, :count) n;
INSERT INTO documents SELECT {at}, convert_to('{{"run": "run-' || n || '", "status": "ok"}}', 'UTF8'), NULL
  FROM generate_series(1, :count) n;
INSERT INTO tags SELECT {at}, 'env', CASE WHEN n % 3 = 0 THEN 'ci' ELSE 'dev' END FROM generate_series(1, :count) n;
INSERT INTO calls SELECT {at}, 'model', 'model-' || n % 9, 200, 1, 0, 1000, 10, 0.003 FROM generate_series(1, :count) n;
INSERT INTO texts SELECT {at}, '', w, '', '', '', ''::tsvector, to_tsvector('simple', w), ''::tsvector, ''::tsvector,
  ''::tsvector FROM (SELECT n, 'the parcel ' || n || ' of customer ' || n % 5000 || ' arrived broken, refund word' || n % 997
  AS w FROM generate_series(1, :count) n) made;
ANALYZE;
"""


def bench_catalogue(folder: Path, count: int) -> list[list[str]]:
    with running_postgres(folder) as url:
        home = folder / "home"
        (home / "runs").mkdir(parents=True)
        db = PostgresDatabase(home, url, "playhead_bench")
        engine.use(home, db)
        filled = seconds(lambda: _fill(db, count))
        day = NEWEST_NS - DAY_NS

        def last() -> None:
            found = list(islice(ServerRows(db).newest_first(project=None, since_ns=None), 20))
            _check(is_right=len(found) == 20)

        def ask(**wanted: Any) -> None:
            page = query(home, Search(limit=20, **wanted), updated=True, complete=False)
            _check(is_right=len(page.rows) > 0)

        rows = [
            ["last 20", last, 30],
            ["one model, last day", lambda: ask(models=("model-3",), since_ns=day), 100],
            ["a rare word", lambda: ask(text="word42 refund"), 300],
            ["a phrase", lambda: ask(text='"customer 4711"'), 300],
            ["a word that every run has", lambda: ask(text="parcel"), 300],
        ]
        told = [[f"{count:,} runs written", f"{filled:.0f} s", ""]]
        told += [_timed(name, work, goal) for name, work, goal in rows]
        engine.use(home, None)
        return told


def _fill(db: PostgresDatabase, count: int) -> None:
    at = f"({NEWEST_NS} - n::bigint * {STEP_NS})"
    with db.writing() as connection:
        for statement in FILL.format(at=at).split(";\n"):
            if statement.strip():
                connection.execute(text(statement), {"count": count})


def _check(*, is_right: bool) -> None:
    if not is_right:
        raise SystemExit("A question got no answer: the figure would mean nothing.")


def _timed(name: str, work: Callable[[], None], goal_ms: int) -> list[str]:
    work()
    times = sorted(seconds(work) * 1000 for _ in range(20))
    return [
        name,
        f"{statistics.median(times):.1f} ms, p95 {times[18]:.1f} ms",
        f"goal {goal_ms} ms",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--view", type=float, default=1.0, help="gigabytes")
    parser.add_argument("--runs", type=int, default=1_000_000)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playhead-bench-"))
    folder.chmod(0o755)
    try:
        rows = bench_push(folder, int(asked.gigabytes * 2**30)) if asked.gigabytes else []
        rows += bench_view(folder, int(asked.view * 2**30)) if asked.view else []
        (folder / "pg").mkdir()
        rows += bench_catalogue(folder / "pg", asked.runs) if asked.runs else []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, measured, goal in rows:
        print(f"| {name} | {measured} | {goal} |")


if __name__ == "__main__":
    main()
