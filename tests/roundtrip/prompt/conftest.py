"""Agents recorded and run again through the command line, in a folder and a store of their own."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from playhead.testing import Reply, ScriptedLLM, ToolCall

PROGRAMS = Path(__file__).parent / "programs"
ASKED = "status of order A-17 in the warehouse today"


class Studio:
    """`record` and `play` run `playhead …`; `seen` holds the effects of tools that really ran.

    All tests of a worker use the same folder, which is on the tapes. So a recording of the same
    program with the same answers and environment is made once; later tests get a copy of it.
    """

    def __init__(self, folder: Path, shelf: Path) -> None:
        self.folder = folder
        self.shelf = shelf
        self.store = folder / "store"
        self.report: dict[str, Any] = {}
        # The user's own store: a copy of a run elsewhere would be another person's tape.
        self.env: dict[str, str] = {
            "PLAYHEAD_HOME": str(self.store), "SEEN": str(folder / "seen"), "SMTP_PORT": "1",
        }  # fmt: skip

    def record(self, program: str, replies=(), **env: str) -> None:
        asked = repr((program, replies, sorted(env.items())))
        kept = self.shelf / hashlib.sha256(asked.encode()).hexdigest()
        # A real server must see the recording, and another one may get its port.
        if self.env["SMTP_PORT"] != "1" or "SITE" in env:
            self._record(program, replies, env)
        elif kept.exists():
            shutil.copytree(kept, self.store)
        else:
            self._record(program, replies, env)
            shutil.copytree(self.store, kept)

    def _record(self, program: str, replies, env: dict[str, str]) -> None:
        words = ["record", "--store", str(self.store), "--no-seal", "--"]
        words += [sys.executable, str(PROGRAMS / f"{program}.py")]
        with ScriptedLLM(list(replies) or [Reply(text="unused")]) as llm:
            done = self._run(words, {**llm.environ(), **env})
        assert done.returncode == 0, done.stderr
        self.seen.unlink(missing_ok=True)

    def play(self, verb: str, *words: str, replies=(), **env: str):
        """The process that ended; `studio.report` and `studio.requests` tell the rest."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        argv = [verb, "last", "--store", str(self.store), "--report", str(report), *words]
        with ScriptedLLM(list(replies) or [Reply(text="unused")]) as llm:
            done = self._run(argv, {**(llm.environ() if replies else {}), **env})
            self.requests = llm.requests
        self.report = json.loads(report.read_text()) if report.exists() else {}
        return done

    @property
    def seen(self) -> Path:
        return self.folder / "seen"

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The manifests in the store, oldest first."""
        found = sorted((self.store / "runs").glob("*/manifest.json"))
        return [json.loads(one.read_text()) for one in found]

    def _run(self, words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            [sys.executable, "-m", "playhead", *words], cwd=self.folder, capture_output=True,
            env={**os.environ, **self.env, **env}, text=True, check=False, timeout=100,
        )  # fmt: skip


@pytest.fixture(scope="session")
def stage(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("studio")


@pytest.fixture
def studio(stage: Path) -> Studio:
    folder = stage / "project"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    return Studio(folder, stage / "recordings")


def look(query: str = ASKED, text: str = "Let me look.") -> Reply:
    return Reply(text=text, tool_calls=[ToolCall(name="search", arguments={"query": query})])


def mail(text: str = "It is late.") -> Reply:
    call = ToolCall(name="send_mail", arguments={"to": "jo@example.com", "text": text})
    return Reply(tool_calls=[call])


@pytest.fixture(name="look")
def make_look():
    return look


@pytest.fixture(name="mail")
def make_mail():
    return mail


@pytest.fixture
def recorded(studio: Studio) -> Studio:
    """The agent without an SDK, which looked once and then knew."""
    studio.record("plain_loop", [look(), Reply(text="It is late.")])
    return studio


@pytest.fixture
def sink() -> Iterator[tuple[int, list[str]]]:
    """A real SMTP server: its port, and every mail that it was given."""
    mails: list[str] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 sink\r\n")
        lines: list[str] | None = None
        while line := await reader.readline():
            word = line.strip().decode("ascii", "replace")
            if lines is not None:
                if word == ".":
                    mails.append("\n".join(lines))
                    lines = None
                    writer.write(b"250 taken\r\n")
                else:
                    lines.append(word)
            elif word.upper() == "DATA":
                lines = []
                writer.write(b"354 go on\r\n")
            elif word.upper() == "QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"250 ok\r\n")
        await writer.drain()
        writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(speak, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1], mails
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
