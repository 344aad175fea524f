"""The vault of a run: what goes in comes out on this machine alone, and nowhere else."""

import gzip
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead import config
from playhead.cli import cli
from playhead.errors import UsageError
from playhead.recording.deck import Piece
from playhead.redact import Redactor
from playhead.redact.vault_notes import VaultNotes, by_placeholder, filled, path_beside
from playhead.replay.matching.taped import _with_secrets
from playhead.tape.sealed import vault
from playhead.tape.store import redaction_key

SECRET = "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8" * 2


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path))
    folder = tmp_path / "runs" / "20261115-071105-k3f9"
    folder.mkdir(parents=True)
    return folder


def redactor_of(run):
    made = Redactor(key=redaction_key(run.parent.parent))
    made.keeper = VaultNotes(str(run), made.key).keep
    return made


def secrets_of(run, key="file"):
    return {one.placeholder: one.secret for one in vault.open_vault(run, key)}


def test_what_is_redacted_comes_back_by_its_placeholder(run):
    redactor = redactor_of(run)
    clean = redactor.clean({"api_key": SECRET, "nested": [{"password": "hunter2 and more"}]})
    assert vault.close_vault(run, "file") == 2
    assert filled(clean, by_placeholder(vault.open_vault(run, "file"))) == {
        "api_key": SECRET,
        "nested": [{"password": "hunter2 and more"}],
    }


def test_files_of_the_vault_are_private_and_show_nothing(run, tmp_path):
    redactor_of(run).clean_text(f"key {SECRET}")
    notes = path_beside(str(run), ".notes")
    assert SECRET.encode() not in Path(notes).read_bytes()
    vault.close_vault(run, "file")
    assert not os.path.exists(notes)
    raw = Path(path_beside(str(run), ".vault")).read_bytes()
    assert SECRET.encode() not in raw
    assert os.stat(path_beside(str(run), ".vault")).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "vault.key").st_mode & 0o777 == 0o600


def test_a_run_that_was_killed_has_its_secrets(run):
    redactor_of(run).clean_text(f"key {SECRET}")
    assert list(secrets_of(run).values()) == [SECRET.encode()]


def test_a_torn_line_of_a_killed_process_costs_that_line_alone(run):
    redactor_of(run).clean_text(f"key {SECRET}")
    with open(path_beside(str(run), ".notes"), "ab") as file:
        file.write(b"12ab")
    assert list(secrets_of(run).values()) == [SECRET.encode()]


def test_a_resumed_run_keeps_the_secrets_of_both_parts(run):
    redactor_of(run).clean_text(f"key {SECRET}")
    vault.close_vault(run, "file")
    redactor_of(run).clean({"password": "correct-horse"})
    vault.close_vault(run, "file")
    assert sorted(secrets_of(run).values()) == [b"correct-horse", SECRET.encode()]


@pytest.mark.parametrize("change", ["key", "file", "run"])
def test_another_key_a_changed_file_and_another_run_do_not_open_it(run, tmp_path, change):
    redactor_of(run).clean_text(f"key {SECRET}")
    vault.close_vault(run, "file")
    stored = path_beside(str(run), ".vault")
    if change == "key":
        (tmp_path / "vault.key").write_bytes(b"x" * 32)
    elif change == "file":
        raw = bytearray(Path(stored).read_bytes())
        raw[-1] ^= 1
        Path(stored).write_bytes(raw)
    else:
        other = run.with_name("20261115-071105-zzzz")
        os.rename(stored, path_beside(str(other), ".vault"))
        run = other
    with pytest.raises(vault.VaultLocked, match="another key"):
        vault.open_vault(run, "file")


def test_a_link_in_the_place_of_the_vault_is_not_followed(run, tmp_path):
    (tmp_path / "victim").write_bytes(b"untouched")
    (tmp_path / "vault").mkdir()
    os.symlink(tmp_path / "victim", path_beside(str(run), ".notes"))
    redactor_of(run).clean_text(f"key {SECRET}")
    assert (tmp_path / "victim").read_bytes() == b"untouched"


def test_the_key_may_be_in_the_keyring(run, tmp_path, monkeypatch):
    ring = {}
    fake = types.ModuleType("keyring")
    fake.get_password = lambda *name: ring.get(name)
    fake.set_password = lambda service, name, value: ring.update({(service, name): value})
    monkeypatch.setitem(sys.modules, "keyring", fake)
    redactor_of(run).clean_text(f"key {SECRET}")
    vault.close_vault(run, "keyring")
    assert list(secrets_of(run, "keyring").values()) == [SECRET.encode()]
    assert len(ring) == 1
    assert not (tmp_path / "vault.key").exists()
    ring.clear()
    with pytest.raises(vault.VaultLocked, match="not in the keyring"):
        vault.open_vault(run, "keyring")


def test_without_the_library_the_request_is_refused_with_the_reason(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(UsageError, match=r"playhead\[vault\]"):
        vault.check("file")


def test_a_compressed_answer_is_filled_and_compressed_again(run):
    redactor = redactor_of(run)
    clean = redactor.clean_bytes(f'{{"api_key": "{SECRET}"}}'.encode())
    vault.close_vault(run, "file")
    raw = gzip.compress(clean)
    head = {"headers": [["content-encoding", "gzip"]]}
    pieces = [
        Piece(stream="body", data=raw[at : at + 20], at_ns=at) for at in range(0, len(raw), 20)
    ]
    done = _with_secrets(pieces, head, by_placeholder(vault.open_vault(run, "file")))
    assert len(done) <= len(pieces)
    assert (
        gzip.decompress(b"".join(one.data for one in done)) == f'{{"api_key": "{SECRET}"}}'.encode()
    )


def test_no_export_has_the_vault_and_rm_deletes_it(forge, store, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    run = forge().end("ok")
    redactor_of(run).clean_text(f"key {SECRET}")
    vault.close_vault(run, "file")
    out = tmp_path / "a.playhead.zip"
    done = CliRunner().invoke(cli, ["export", run.name, "--bundle", str(out)])
    assert done.exit_code == 0, done.output
    assert not [one for one in zipfile.ZipFile(out).namelist() if "vault" in one]
    assert CliRunner().invoke(cli, ["rm", run.name, "--yes"]).exit_code == 0
    assert not os.path.exists(path_beside(str(run), ".vault"))


def test_the_config_gives_every_recording_a_vault(store, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playhead.toml").write_text("[redact]\nvault = true\n")
    words = [
        sys.executable,
        "-m",
        "playhead",
        "record",
        "--quiet",
        "--no-workspace",
        "--",
        sys.executable,
    ]
    # Assembled by the program: the command line is redacted before a run has a vault.
    code = f"print('sk-proj-' + {SECRET.removeprefix('sk-proj-')!r})"
    subprocess.run([*words, "-c", code], check=True, capture_output=True)
    assert [one.suffix for one in (store / "vault").iterdir()] == [".vault"]
    (tmp_path / "playhead.toml").write_text("[redact]\nvault = 'perhaps'\n")
    with pytest.raises(config.ConfigError, match=r"redact.vault"):
        config.load(tmp_path)


def test_the_config_names_the_place_of_the_key(tmp_path):
    (tmp_path / "playhead.toml").write_text('[redact]\nvault_key = "keyring"\n')
    assert config.load(tmp_path).vault_key == "keyring"
    (tmp_path / "playhead.toml").write_text('[redact]\nvault_key = "disk"\n')
    with pytest.raises(config.ConfigError, match="vault_key"):
        config.load(tmp_path)
