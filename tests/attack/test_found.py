"""Tapes and sessions with which the attack suite broke a verb, each made small."""

import json
import random
import threading
import zipfile
from collections import Counter

import httpx
import pytest
import requests
from click.testing import CliRunner
from tests.attack import bombs, secret_matrix
from tests.attack.mutants import SESSIONS, _forge

import playhead
from playhead.cli import cli
from playhead.errors import PlayheadError, TapeDamaged
from playhead.exporters.bundle import open_bundle, write_bundle
from playhead.host import private_files
from playhead.remote.objects import ObjectFolder
from playhead.remote.pushing import push
from playhead.tape.reader import Tape
from playhead.tape.reading import segment_rows
from playhead.tape.single_file import unpack


def tape_with(folder, change):
    tape = _forge.Forge(folder)
    change(tape)
    run = tape.end("ok")
    if change is half_a_surrogate_pair:
        members = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(
            json.dumps({**members, "name": "\ud800", "status": "\ud800"})
        )
    return run


def headers_that_are_a_number(tape):
    call = tape.call("http", "GET x.test/", {"url": "http://x.test/"})
    tape.event(
        "chunk",
        {"call": call, "stream": "head", "value": {"status": 200, "headers": 7}, "at_ns": [1]},
    )
    tape.outcome(call, value=None)


def purpose_that_is_a_list(tape):
    turn = tape.event("turn.start", {"name": "reply", "purpose": ["a"], "input": None})
    tape.event("turn.end", {"turn": turn, "how": "returned"})


def outcome_of_a_list(tape):
    tape.event("outcome", {"call": [1], "how": "returned"})


def workspace_with_a_list_for_a_number(tape):
    tape.event("workspace", {"workspace": [], "root": "/srv", "tree": None})


def workspace_whose_facts_have_other_types(tape):
    tape.event("workspace", {"workspace": 0, "root": "/srv", "tree": None, "left_out_count": {}})


def file_change_after_a_list(tape):
    tape.event("files", {"workspace": 0, "calls": [], "until_ns": 1, "changes": [], "after": [1]})


def half_a_surrogate_pair(tape):
    """In the manifest: `tape_with` writes it, because the forge cannot."""


CHANGES = (
    headers_that_are_a_number,
    purpose_that_is_a_list,
    outcome_of_a_list,
    workspace_with_a_list_for_a_number,
    workspace_whose_facts_have_other_types,
    file_change_after_a_list,
    half_a_surrogate_pair,
)
VERBS = (
    ("show", "RUN", "--full"),
    ("export", "RUN", "--html", "OUT"),
    ("export", "RUN", "--tape", "OUT"),
    ("replay", "RUN", "--trust", "--dry-run"),
    ("files", "RUN"),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_no_verb_breaks_on_a_tape_with(change, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path))
    run = tape_with(tmp_path, change)
    for verb in VERBS:
        named = {"RUN": run.name, "OUT": str(tmp_path / verb[-2].strip("-"))}
        done = CliRunner().invoke(cli, [named.get(word, word) for word in verb])
        assert done.exception is None or isinstance(done.exception, SystemExit | PlayheadError), (
            verb,
            done.exception,
        )
    assert unpack(tmp_path / "tape", tmp_path / "again").is_dir()


@pytest.mark.parametrize("verb", [("export", "--story", "OUT"), ("replay", "--trust", "--dry-run")])
def test_a_verb_opens_each_segment_three_times_at_most(verb, tmp_path, monkeypatch):
    """5,000 segments took more than two seconds: each was opened twice for its first line and twice for the rest."""
    bombs.many_segments(tmp_path, 20)
    opened = Counter()

    def counted(path):
        opened[path.name] += 1
        return private_files.open_regular(path)

    monkeypatch.setattr(segment_rows, "open_regular", counted)
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path))
    words = [str(tmp_path / "out") if word == "OUT" else word for word in verb[1:]]
    done = CliRunner().invoke(cli, [verb[0], bombs.RUN, *words])
    assert done.exit_code == 0, done.output
    assert len(opened) == 20
    assert max(opened.values()) <= 3


def test_neither_a_bundle_nor_a_push_has_a_file_that_a_tape_names_by_its_path(tmp_path):
    """The name of a file's content was a path: `export --bundle` and `push` took that file of the user along."""
    secret = tmp_path / "id_ed25519"
    secret.write_text("a private key")
    store = tmp_path / "store"
    tape = _forge.Forge(store)
    tape.event("workspace", {"workspace": 0, "root": "/srv", "tree": None})
    after = ["100644", 13, 0, str(secret)]
    change = {"path": "a.txt", "before": None, "after": after}
    tape.event("files", {"workspace": 0, "calls": [], "until_ns": 1, "changes": [change]})
    run = tape.end("ok")
    write_bundle(run, tmp_path / "a.playhead.zip")
    with zipfile.ZipFile(tmp_path / "a.playhead.zip") as archive:
        assert [one for one in archive.namelist() if "id_ed25519" in one] == []
    push(run, ObjectFolder(f"file://{tmp_path}/shared", for_writing=True))
    files = [one for one in (tmp_path / "shared").rglob("*") if one.is_file()]
    assert files
    assert not [one for one in files if b"a private key" in one.read_bytes()]


def test_a_claude_session_with_hostile_usage_and_id_is_imported(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "home"))
    rows = [json.loads(one) for one in SESSIONS["CLAUDE"].read_text().splitlines()]
    for row in rows:
        if row.get("type") == "assistant":
            row["message"]["usage"] = {"output_tokens": "many"}
        if "sessionId" in row:
            row["sessionId"] = "\ud800"
    file = tmp_path / "claude.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(cli, ["import", "claude", str(file)])
    assert done.exit_code == 0, done.exception


@pytest.fixture
def bundle(tmp_path):
    write_bundle(_forge.Forge(tmp_path / "store").end("ok"), tmp_path / "a.playhead.zip")
    return tmp_path / "a.playhead.zip"


def test_a_mutated_bundle_is_opened_or_refused(bundle, tmp_path):
    """A quarter of them ended with an error of zlib or zipfile."""
    chance, raw = random.Random(4), bundle.read_bytes()
    for number in range(200):
        mutant = bytearray(raw)
        for _ in range(chance.randint(1, 4)):
            mutant[chance.randrange(len(mutant))] = chance.randrange(256)
        bundle.write_bytes(mutant[: chance.choice((None, chance.randrange(len(mutant))))])
        try:
            open_bundle(bundle, tmp_path / f"out{number}")
        except TapeDamaged:
            continue


def test_a_bundle_that_expands_without_end_is_refused_before_it_is_unpacked(bundle, tmp_path):
    with zipfile.ZipFile(bundle, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("runs/bomb", b"\0" * 100_000_000)
    with pytest.raises(TapeDamaged, match="200 times its size"):
        open_bundle(bundle, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", secret_matrix.ENCODE)
def test_a_secret_in_a_compressed_body_that_is_sent_in_pieces_is_redacted(tmp_path, encoding):
    secret = b"sk-ant-api03-AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8"
    raw = secret_matrix.ENCODE[encoding](b'{"key": "%s", "more": "%s"}' % (secret, b"x" * 200))
    pieces = [raw[at : at + 30] for at in range(0, len(raw), 30)]
    secret_matrix._Handler.bodies = {}
    server = secret_matrix._Server(("127.0.0.1", 0), secret_matrix._Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/sink"
    headers = {"content-encoding": encoding}
    with playhead.record(store=tmp_path, intercept=True) as run:
        httpx.post(url, content=iter(pieces), headers=headers)
        requests.post(url, data=iter(pieces), headers=headers, timeout=10)
    server.shutdown()
    server.server_close()
    sent = {}
    for event in Tape(run.path).events():
        if event.kind == "chunk" and event.data["stream"] == "sent":
            sent.setdefault(event.data["call"], []).append(secret_matrix._bytes_of(event.data))
    bodies = [b"".join(one) for one in sent.values()]
    assert len(bodies) == 2
    for body in bodies:
        plain = [*secret_matrix._decompressed(body)]
        assert any(b"redacted" in one for one in plain)
        assert not any(secret in one for one in (body, *plain))
