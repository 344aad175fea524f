"""A store that somebody else made: links, pipes, devices and folders where files are expected."""

import ast
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

import playhead
from playhead.cli import main
from playhead.tape.manifest import write_manifest
from playhead.tape.sealed.seal import seal

SECRET = "this-text-is-in-a-file-of-the-user"
VERBS = (
    *(["list", "--all"], ["search", "refund", "--all"], ["stats", "--all"], ["reindex"], ["show", "RUN"]),
    *(["verify", "RUN"], ["repair", "RUN"], ["seal", "RUN"], ["unseal", "RUN"], ["events", "RUN"]),
    *(["export", "RUN", "--story", "OUT"], ["note", "RUN", "hello"], ["replay", "RUN", "--dry-run"]),
)  # fmt: skip


@pytest.fixture
def victim(tmp_path) -> Path:
    path = tmp_path / "id_rsa"
    path.write_text(SECRET)
    return path


@pytest.fixture
def attempt(tmp_path, monkeypatch, capsys):
    """Run a verb in this process: what it printed. It fails where it hangs or prints a traceback."""
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)

    def too_slow(*_: object) -> None:
        raise TimeoutError("hangs")

    monkeypatch.setattr(signal, "default_int_handler", too_slow)
    before = signal.signal(signal.SIGALRM, too_slow)

    def run(words: list[str], run_id: str) -> str:
        named = {"RUN": run_id, "OUT": str(tmp_path / "out.json")}
        monkeypatch.setattr("sys.argv", ["playhead", *(named.get(one, one) for one in words)])
        signal.alarm(20)
        try:
            with pytest.raises(SystemExit):
                main()
        finally:
            signal.alarm(0)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return told.out + told.err

    yield run
    signal.signal(signal.SIGALRM, before)


def a_pipe(path: Path, victim: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def an_endless_link(path: Path, victim: Path) -> None:
    path.symlink_to("/dev/zero")


def a_folder(path: Path, victim: Path) -> None:
    path.mkdir()


NAMES = (
    "manifest.json",
    "annotations.json",
    "replay.json",
    "tape.index.json",
    "tape.jsonl.zst",
    "tape-7.jsonl",
)
KINDS = (a_pipe, a_link, an_endless_link, a_folder)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_no_verb_opens_what_is_no_regular_file(forge, attempt, victim, name, kind):
    sound = forge("20261115-071105-good")
    sound.tool("search", {"query": "refund"})
    sound.end()
    tape = forge()
    tape.tool("search", {"query": "refund"})
    run = tape.end()
    if name.startswith("tape."):
        seal(run)
    place = run / name
    place.unlink(missing_ok=True)
    kind(place, victim)
    for words in VERBS:
        said = attempt(words, run.name)
        assert SECRET not in said
        if words[0] == "list":
            assert "20261115-071105-good" in said
    assert victim.read_text() == SECRET


PARTS = (
    "manifest.json",
    "annotations.json",
    "tape.jsonl.zst",
    "tape.index.json",
    "tape-4194999.jsonl",
)


@pytest.mark.parametrize("damaged", [True, False])
def test_nothing_is_written_through_a_planted_link(forge, attempt, victim, damaged):
    tape = forge()
    tape.tool("search", {"query": "refund"})
    run = tape.end()
    if damaged:
        with (run / "tape-4194999.jsonl").open("ab") as segment:
            segment.write(b"{rubbish}\n")
    pid = os.getpid()
    for name in PARTS:
        for suffix in (".part", f".{pid}.part", f".{pid}.0.part", ".tmp"):
            (run / (name + suffix)).symlink_to(victim)
    write_manifest(run, tape.manifest)
    for words in VERBS:
        attempt(words, run.name)
    assert victim.read_text() == SECRET


def test_a_replay_of_a_sealed_tape_copies_nothing_that_links_in_it_lead_to(forge, victim, tmp_path):
    from playhead.cli.replaying.replay_arguments import plain
    from playhead.tape.reader import Tape

    tape = forge()
    tape.tool("search", {"query": "refund"})
    run = tape.end()
    seal(run)
    (run / "key").symlink_to(victim)
    (run / "endless").symlink_to("/dev/zero")
    (run / "home").symlink_to(tmp_path)
    (run / "blobs").mkdir()
    (run / "blobs" / "aa").symlink_to(victim)
    os.mkfifo(run / "pipe")
    copy = plain(Tape(run)).run
    assert sorted(one.name for one in copy.rglob("*")) == ["manifest.json", "tape-4194999.jsonl"]
    shutil.rmtree(copy)


def test_modules_of_the_tape_open_files_by_one_function():
    """`open(NAME, …)` and `os.open` that creates without O_EXCL or follows links are found in no module."""
    found = []
    for module in (Path(playhead.__file__).parent / "tape").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called, words = ast.unparse(node.func), ast.unparse(node)
            opens = called == "open" and not words.startswith(("open(fd", "open(open_regular("))
            whole = called.endswith((".read_text", ".read_bytes", ".write_text", ".write_bytes"))
            follows = called == "os.open" and not re.search("O_NOFOLLOW|O_EXCL|_FLAGS", words)
            if opens or whole or (follows and "os.open(run" not in words):
                found.append(f"{module.name}:{node.lineno} {words}")
    assert found == []
