"""A tape of another user: its command runs with the user's consent, inside the fence. See also
tests/unit/cli/replaying/test_approval.py.
"""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

from playhead.tape.format import close_line
from playhead.tape.single_file import pack

PLAYHEAD = [sys.executable, "-m", "playhead"]


class User:
    """A user with a store of his own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.env = {**os.environ, "PLAYHEAD_HOME": str(self.home)}

    def playhead(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            [*PLAYHEAD, *map(str, words)], cwd=self.work, env={**self.env, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.fixture
def user(tmp_path):
    return User(tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A run of another user."""
    other = User(tmp_path_factory.mktemp("other"))
    done = other.playhead("record", "--no-seal", "--", "sh", "-c", "echo ran")
    assert done.returncode == 0, done.stderr
    (run,) = (other.home / "runs").iterdir()
    return run


@pytest.fixture
def theirs(recorded, tmp_path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "theirs"))


def test_consent_is_remembered_for_these_bytes_alone(user, theirs):
    first = user.playhead("replay", theirs, "--trust")
    assert (first.returncode, first.stdout) == (0, "ran\n"), first.stderr
    assert user.playhead("replay", theirs).returncode == 0
    manifest = json.loads((theirs / "manifest.json").read_text())
    manifest["command"] = ["sh", "-c", "echo other"]
    (theirs / "manifest.json").write_text(json.dumps(manifest))
    changed = user.playhead("replay", theirs)
    assert changed.returncode == 4
    assert "echo other" in changed.stderr


def test_batch_runs_a_foreign_tape_with_trust(user, theirs):
    pack(theirs, user.folder / "theirs.tape.jsonl")
    done = user.playhead("batch", user.folder / "theirs.tape.jsonl", "--trust")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_the_command_and_its_folder_are_shown_and_the_user_decides(
    user, theirs, answer
):
    primary, replica = pty.openpty()
    asking = subprocess.Popen(
        [*PLAYHEAD, "replay", str(theirs)], cwd=user.work, env=user.env,
        stdin=replica, stdout=replica, stderr=replica,
    )  # fmt: skip
    os.close(replica)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(primary, 4096)
    assert b"sh -c 'echo ran'" in asked
    assert b"/work" in asked
    os.write(primary, f"{answer}\n".encode())
    said = b""
    try:
        while block := os.read(primary, 4096):
            said += block
    except OSError:
        pass  # the other end is closed
    asking.wait(timeout=60)
    os.close(primary)
    assert (b"ran\r\n" in said) is (answer == "y")
    assert (asking.returncode == 4) is (answer == "n")


def test_a_run_in_a_store_of_the_users_choice_is_the_users_own_and_a_copy_is_not(user):
    elsewhere = user.folder / "elsewhere"
    user.playhead("record", "--store", elsewhere, "--", "sh", "-c", "echo ran")
    now = user.playhead("replay", "last", "--store", elsewhere)
    assert (now.returncode, now.stdout) == (0, "ran\n"), now.stderr
    run = min((elsewhere / "runs").iterdir())
    shutil.copytree(run, elsewhere / "runs" / "copy")
    assert user.playhead("replay", "copy", "--store", elsewhere).returncode == 4


def with_environment(run: Path, changes: dict[str, str]) -> None:
    """Rewrite the environment on the tape, with valid checksums, as an attacker would."""
    for segment in run.glob("tape-*.jsonl"):
        crc, lines = 0, []
        for line in segment.read_bytes().splitlines():
            members = json.loads(line)
            members.pop("crc", None)
            if members["kind"] == "run.start":
                members["data"]["env"] |= changes
            body = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
            made, crc = close_line(body, crc)
            lines.append(made)
        segment.write_bytes(b"".join(lines))
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "segments": []}))


def test_the_environment_of_a_foreign_tape_loads_no_code_also_with_a_command_of_the_user(
    user, theirs
):
    hostile = ("LD_PRELOAD", "BASH_ENV", "PYTHONSTARTUP", "GIT_SSH_COMMAND", "HTTPS_PROXY", "MODE")
    with_environment(theirs, {**dict.fromkeys(hostile, "/evil"), "TZ": "Asia/Tokyo"})
    now = user.playhead("replay", theirs, "--", "env")
    assert "/evil" not in now.stdout
    assert "TZ=Asia/Tokyo" in now.stdout
    assert "not applied from the tape" in now.stderr


def test_the_report_names_variables_of_today_that_the_replay_does_not_see(user):
    user.playhead("record", "--no-seal", "--", "sh", "-c", "echo mode $MODE", MODE="recorded")
    now = user.playhead("replay", "last", MODE="today")
    assert now.stdout == "mode recorded\n"
    assert "MODE: as on the tape, not as set now" in now.stderr
    chosen = user.playhead("replay", "last", "--env", "MODE=chosen", MODE="today")
    assert chosen.stdout == "mode chosen\n"
