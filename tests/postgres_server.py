"""A real PostgreSQL server for tests, from the machine's own packages."""

import contextlib
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# What Debian's server runs as; PostgreSQL refuses to be started by root.
OTHER_USER = "postgres"


def absent(reason: str) -> None:
    """On a developer's machine there need be no server; where all is to be proven there must."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} `apt-get install postgresql` brings one.")
    pytest.skip(reason)


def program(name: str) -> str:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(debian[-1]) if debian else None)
    if found is None:
        absent(f"There is no PostgreSQL server here ({name}).")
    return str(found)


@contextlib.contextmanager
def running(*initdb_options: str, on_tcp: bool = False) -> Iterator[tuple[Path, int]]:
    """The folder of the server's socket, and its port. The user `locked` needs a password, every
    other one does not."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    version = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=True)
    if int(re.search(r"\d+", version.stdout)[0]) < 15:
        absent("The PostgreSQL server here is older than 15.")
    # Not tmp_path: the name of a socket may have a hundred letters.
    folder = Path(tempfile.mkdtemp(prefix="playhead-pg-"))
    other: dict[str, str] = {}
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(OTHER_USER)
        except KeyError:
            absent(f"There is no user {OTHER_USER} to run PostgreSQL.")
        shutil.chown(folder, OTHER_USER)
        other = {"user": OTHER_USER}

    def run(*argv: str) -> None:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, check=False, **other
        )
        assert done.returncode == 0, done.stderr

    port = 5432
    address = ""
    if on_tcp:
        address = "127.0.0.1"
        with socket.create_server((address, 0)) as found:
            port = found.getsockname()[1]
    data, log = str(folder / "data"), str(folder / "log")
    try:
        run(
            initdb,
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "playhead",
            "-E",
            "UTF8",
            "--no-sync",
            *initdb_options,
        )
        # The user `locked` needs a password; every other one comes in without.
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        options = f"-k {folder} -p {port} -c listen_addresses='{address}' -c fsync=off -c full_page_writes=off"
        run(pg_ctl, "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield folder, port
        finally:
            run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
