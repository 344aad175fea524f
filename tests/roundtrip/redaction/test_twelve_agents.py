"""Agents that use secrets from a server replay as they ran, although the tape does not have the secrets."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import zstandard

sys.path.insert(0, str(Path(__file__).parent))
import server

PROGRAM = Path(__file__).parent / "agents.py"
PLAYHEAD = [sys.executable, "-m", "playhead"]
# They compute with the secret itself, or write it into a file: what a placeholder cannot replace.
NEED_THE_SECRET = ("body_hash", "code_with_password")
OTHERS = (
    *("jwt_payload", "cookie_jar", "key_length", "config_file", "signed_url", "oauth_exchange"),
    *("pin", "logprobs", "next_page_token", "presigned_upload"),
)


class Took(NamedTuple):
    """A recording of some agents, and its replay after the server has gone."""

    home: Path
    recorded: subprocess.CompletedProcess[str]
    replayed: subprocess.CompletedProcess[str]

    def line(self, agent):
        lines = [run.stdout.splitlines() for run in (self.recorded, self.replayed)]
        return [[one for one in run if one.startswith(f"{agent}:")] for run in lines]


def take(folder: Path, agents, *options: str, shape="httpx", compresses=False) -> Took:
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    env = {**os.environ, "PLAYHEAD_HOME": str(home), "SHAPE": shape}

    def playhead(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PLAYHEAD, *words], cwd=work, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip

    served = server.start(compresses=compresses)
    address = f"http://127.0.0.1:{served.server_address[1]}"
    recorded = playhead("record", *options, "--", sys.executable, str(PROGRAM), address, *agents)
    served.shutdown()
    served.server_close()
    return Took(home, recorded, playhead("replay"))


def everything(home: Path) -> bytes:
    """The bytes of a store, sealed tapes decompressed."""
    raw = b""
    for one in home.rglob("*"):
        if one.is_file():
            raw += one.read_bytes()
            if one.suffix == ".zst":
                reader = zstandard.ZstdDecompressor().stream_reader(
                    one.read_bytes(), read_across_frames=True
                )
                raw += reader.read()
    return raw


@pytest.fixture(scope="module")
def without_vault(tmp_path_factory) -> Took:
    return take(tmp_path_factory.mktemp("plain"), OTHERS)


@pytest.mark.parametrize("agent", OTHERS)
def test_an_agent_that_passes_secrets_on_replays_with_placeholders(without_vault, agent):
    then, now = without_vault.line(agent)
    assert then == now
    assert "Error" not in then[0]


def test_the_replay_of_all_of_them_is_identical(without_vault):
    assert without_vault.replayed.returncode == 0, without_vault.replayed.stderr
    assert "identical" in without_vault.replayed.stderr


def test_no_secret_is_in_the_store(without_vault):
    raw = everything(without_vault.home)
    assert [name for name, one in server.SECRETS.items() if one.encode() in raw] == []


@pytest.fixture(scope="module")
def with_vault(tmp_path_factory) -> Took:
    return take(tmp_path_factory.mktemp("vault"), NEED_THE_SECRET, "--vault")


@pytest.mark.parametrize("agent", NEED_THE_SECRET)
def test_an_agent_that_computes_with_a_secret_replays_with_a_vault(with_vault, agent):
    then, now = with_vault.line(agent)
    assert then == now
    assert "Error" not in then[0]
    assert with_vault.replayed.returncode == 0, with_vault.replayed.stderr
    assert "files: identical" in with_vault.replayed.stderr


def test_neither_the_vault_nor_the_tapes_show_a_secret(with_vault):
    raw = everything(with_vault.home)
    assert [name for name, one in server.SECRETS.items() if one.encode() in raw] == []
    vault = with_vault.home / "vault"
    assert [one.suffix for one in vault.iterdir()] == [".vault"]
    assert {
        one.stat().st_mode & 0o777 for one in [*vault.iterdir(), with_vault.home / "vault.key"]
    } == {0o600}


def test_a_divergence_that_redaction_causes_says_so(tmp_path):
    took = take(tmp_path, ["body_hash"])
    assert took.replayed.returncode == 3
    said = " ".join(took.replayed.stderr.split())
    assert "Redaction may be the cause: step" in said
    assert "playhead record --vault" in said
