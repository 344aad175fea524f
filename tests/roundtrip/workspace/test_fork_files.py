"""A fork continues on the files of its step, with live tools, and leaves the real files alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.roundtrip.workspace.conftest import Project
from tests.unit.workspace.conftest import GIT, fingerprint
from tests.unit.workspace.test_session import SCRIPTS

# Each script is run at least twice.
STEPS = 60
# Prints the tree before each step, so a fork shows which files it found.
SESSION = f"""
import hashlib, os, subprocess, sys
SCRIPTS = {SCRIPTS!r}
GIT = {GIT!r}
def tree():
    found = hashlib.sha256()
    for top, folders, files in os.walk("."):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = os.path.join(top, name)
            status = os.lstat(path)
            found.update(f"{{path}} {{status.st_mode:o}}".encode())
            if os.path.islink(path):
                found.update(os.readlink(path).encode())
            elif os.path.isfile(path):
                found.update(open(path, "rb").read())
    return found.hexdigest()
last = int(sys.argv[1]) if len(sys.argv) > 1 else {STEPS}
for step in range({STEPS}):
    print(step + 1, tree(), flush=True)
    if step + 1 == last:
        break
    script = SCRIPTS[step % len(SCRIPTS)].format(n=(step * 7) % 20, i=step)
    subprocess.run(["bash", "-c", script], env={{**os.environ, **GIT}}, capture_output=True)
"""

NOTES = """
import subprocess
def sh(script):
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
sh("echo one >> notes.txt")
sh("echo two >> notes.txt; echo made > made.txt")
print(sh("date +%N >> notes.txt; cat notes.txt"), end="")
"""


@pytest.fixture
def notes(project: Project) -> Project:
    project.write("notes.txt", "start\n")
    project.write("mine.txt", "then\n")
    project.record(NOTES)
    return project


# Forks of a session of many steps; FORKS=20 for more of them.
@pytest.mark.timeout(400)
def test_the_files_of_a_fork_are_those_of_its_step_at_random_steps(project: Project) -> None:
    for number in range(20):
        project.write(
            f"src/m{number}.py", "".join(f"line {line} of {number}\n" for line in range(50))
        )
    project.write("notes.txt", "")
    (project.folder / "empty").mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=project.folder, check=True)
    program = project.home.parent / "session.py"
    program.write_text(SESSION)
    words = (sys.executable, str(program))
    expected = project.playhead("record", "--quiet", "--", *words).stdout.splitlines()
    assert len(expected) == STEPS
    before = fingerprint(project.folder)
    steps = random.Random(14).sample(range(2, STEPS + 1), int(os.environ.get("FORKS", "3")))
    wrong = []
    for step in steps:
        done = project.playhead(
            *("fork", "last", "--at", str(step), "--no-persist", "--", *words, str(step))
        )
        if done.stdout.splitlines() != expected[:step]:
            wrong.append((step, done.stderr))
    assert not wrong
    assert fingerprint(project.folder) == before


def test_tools_run_live_in_the_workspace_of_the_step(notes: Project) -> None:
    notes.write("notes.txt", "today\n")
    before = fingerprint(notes.folder)
    done = notes.playhead("fork", "last", "--at", "3", "--no-persist")
    assert done.returncode == 0, done.stderr
    *lines, number = done.stdout.splitlines()
    assert lines == ["start", "one", "two"]
    assert number.isdigit()
    assert "Faithful: the files are those of the recording after its first 2 calls." in done.stderr
    assert fingerprint(notes.folder) == before


def test_the_tape_of_a_fork_has_its_own_files(notes: Project, tmp_path: Path) -> None:
    notes.write("notes.txt", "today\n")
    done = notes.playhead("fork", "last", "--at", "3")
    assert done.returncode == 0, done.stderr
    # Two calls from the tape with their recorded changes, and a live one.
    told = notes.json("files", "last")
    changed = [(one["calls"], [c["path"] for c in one["changes"]]) for one in told["steps"]]
    assert changed == [([1], ["notes.txt"]), ([2], ["made.txt", "notes.txt"]), ([3], ["notes.txt"])]
    for step, expected in (("1", "start\none\n"), ("3", done.stdout)):
        target = tmp_path / f"at{step}"
        assert notes.playhead("checkout", "last", "--at", step, str(target)).returncode == 0
        assert (target / "notes.txt").read_text() == expected
    # The fork can be replayed like any other run.
    again = notes.playhead("replay", "last")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert "files: identical (2 changed by the run)" in again.stderr


def test_a_fork_requires_no_faith_where_files_are_restored(notes: Project) -> None:
    done = notes.playhead("fork", "last", "--at", "3", "--no-persist", "--require-faithful")
    assert done.returncode == 0, done.stderr
    without = notes.playhead(
        "fork", "last", "--at", "3", "--no-persist", "--require-faithful", "--unfenced"
    )
    assert without.returncode == 2
    assert "not faithful" in without.stderr


def test_apply_shows_a_patch_and_changes_nothing_unless_that_is_confirmed(notes: Project) -> None:
    before = fingerprint(notes.folder)
    done = notes.playhead("fork", "last", "--at", "2", "--no-persist", "--apply")
    assert "+++ b/notes.txt" in done.stderr
    assert "add --yes" in done.stderr
    assert fingerprint(notes.folder) == before


def test_apply_takes_over_the_files_of_the_fork_and_can_be_undone(notes: Project) -> None:
    notes.write("mine.txt", "edited since\n")
    before = fingerprint(notes.folder)
    recorded = (notes.folder / "notes.txt").read_text()
    done = notes.playhead("fork", "last", "--at", "3", "--no-persist", "--apply", "--yes")
    assert done.returncode == 0, done.stderr
    now = (notes.folder / "notes.txt").read_text().splitlines()
    assert now[:3] == ["start", "one", "two"]
    assert now != recorded.splitlines()
    assert now[3] == done.stdout.splitlines()[3]
    assert (notes.folder / "mine.txt").read_text() == "edited since\n"
    undo = done.stdout.splitlines()[-1].removeprefix("Undo: playhead ").split()
    assert notes.playhead(*undo).returncode == 0
    assert fingerprint(notes.folder) == before


def test_apply_leaves_a_file_that_a_person_edited_since(notes: Project) -> None:
    notes.write("notes.txt", "my own words\n")
    done = notes.playhead("fork", "last", "--at", "3", "--no-persist", "--apply", "--yes")
    assert "were edited since the recording: notes.txt" in " ".join(done.stderr.split())
    assert (notes.folder / "notes.txt").read_text() == "my own words\n"


def test_apply_brings_the_commits_of_the_fork(project: Project) -> None:
    git = "git -c user.name=a -c user.email=a@b.c"
    project.write("a.txt", "one\n")
    script = f"git init -q . && git add -A && {git} commit -qm one"
    subprocess.run(["sh", "-c", script], cwd=project.folder, check=True)
    project.record(
        "import subprocess\n"
        "def sh(script): subprocess.run(['sh', '-c', script], check=True)\n"
        "sh('echo two >> a.txt')\n"
        f"sh('{git} commit -qam two')\n"
    )
    log = ["git", "log", "--format=%H %s"]
    first = subprocess.check_output(log, cwd=project.folder, text=True).splitlines()
    done = project.playhead("fork", "last", "--at", "2", "--no-persist", "--apply", "--yes")
    assert done.returncode == 0, done.stderr
    now = subprocess.check_output(log, cwd=project.folder, text=True).splitlines()
    assert [one.split()[1] for one in now] == ["two", "one"]
    assert now[1] == first[1]
    status = subprocess.check_output(["git", "status", "--short"], cwd=project.folder, text=True)
    assert status == ""
    fsck = subprocess.run(["git", "fsck"], cwd=project.folder, capture_output=True, check=False)
    assert fsck.returncode == 0


def test_an_unknown_tool_is_not_run_in_a_fork_by_default(project: Project, tmp_path: Path) -> None:
    project.record(
        "import playhead\n"
        "@playhead.tool\n"
        "def note(text):\n"
        "    open('notes.txt', 'a').write(text)\n"
        "    return 'noted'\n"
        "@playhead.tool\n"
        "def send(text):\n"
        "    return 'sent'\n"
        "print(note('a'), send('b'))\n"
    )
    done = project.playhead("fork", "last", "--at", "1", "--no-persist", "--dry-run")
    rows = {
        line.split()[1]: line
        for line in done.stdout.splitlines()
        if " note " in line or " send " in line
    }
    assert "live" in rows["note"]
    assert "live" not in rows["send"]
