"""`playhead files`, `checkout` and `blame` on a recorded program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.roundtrip.workspace.conftest import Project

from playhead.testing import HttpSite

AGENT = """
import subprocess
def sh(script):
    subprocess.run(["sh", "-c", script], check=True)
sh("printf 'one\\ntwo\\nthree\\n' > a.txt")
open("own.txt", "w").write("mine\\n")
sh("sed -i 's/two/TWO/' a.txt; mkdir empty")
sh("mv a.txt b.txt; printf 'four\\n' >> b.txt; head -c 3000 /dev/urandom > noise.bin")
"""


@pytest.fixture
def recorded(project: Project) -> Project:
    project.write("kept.txt", "kept\n")
    project.record(AGENT)
    return project


def changes(project: Project, *options: str) -> list[tuple[int, bool, list[tuple[str, str]]]]:
    told = project.json("files", "last", *options)
    return [
        (one["step"], one["between_calls"], [(c["how"], c["path"]) for c in one["changes"]])
        for one in told["steps"]
    ]


def test_every_change_is_listed_under_the_call_that_made_it(recorded: Project) -> None:
    assert changes(recorded) == [
        (1, False, [("added", "a.txt")]),
        (1, True, [("added", "own.txt")]),
        (2, False, [("modified", "a.txt"), ("added", "empty")]),
        (3, False, [("deleted", "a.txt"), ("added", "b.txt"), ("added", "noise.bin")]),
    ]
    assert [one[0] for one in changes(recorded, "--since", "2")] == [3]
    assert [one[0] for one in changes(recorded, "--at", "1")] == [1, 1]
    text = recorded.playhead("files", "last").stdout
    assert "M a.txt +1 −1" in text
    assert "noise.bin binary" in text


def test_own_code_is_listed_after_the_last_call_of_any_kind(project: Project) -> None:
    with HttpSite() as site:
        project.record(
            "import subprocess, urllib.request\n"
            "subprocess.run(['true'])\n"
            f"urllib.request.urlopen('{site.url}/echo').read()\n"
            "open('own.txt', 'w').write('mine')\n"
        )
    assert changes(project) == [(2, True, [("added", "own.txt")])]


def test_a_call_is_shown_with_the_diffs_of_its_files(recorded: Project) -> None:
    text = recorded.playhead("show", "last", "--call", "2").stdout
    assert "M a.txt +1 −1\n      @@ -1,3 +1,3 @@\n       one\n      -two\n      +TWO\n" in text
    assert "\x1b" not in text
    told = {one["path"]: one for one in recorded.json("show", "last", "--call", "3")["files"]}
    assert told["b.txt"]["patch"].endswith("@@ -0,0 +1,4 @@\n+one\n+TWO\n+three\n+four\n")
    assert "Binary files" in told["noise.bin"]["patch"]


def test_an_exported_page_says_that_it_includes_files(recorded: Project, tmp_path: Path) -> None:
    pages = [tmp_path / "with.html", tmp_path / "without.html"]
    done = recorded.playhead("export", "last", "--html", str(pages[0]))
    assert "contents of changed files: 5. --no-files leaves them out." in done.stderr
    done = recorded.playhead("export", "last", "--no-files", "--html", str(pages[1]))
    assert "changed files" not in done.stderr
    blocks = ['data-block="file-texts-0"' in page.read_text() for page in pages]
    assert blocks == [True, False]


def test_a_patch_of_a_step_applies_with_git(recorded: Project, tmp_path: Path) -> None:
    patch = recorded.playhead("files", "last", "--at", "2", "--patch").stdout
    target = tmp_path / "other"
    assert recorded.playhead("checkout", "last", "--at", "1", str(target)).returncode == 0
    subprocess.run(["git", "apply", "-"], cwd=target, input=patch, text=True, check=True)
    assert (target / "a.txt").read_text() == "one\nTWO\nthree\n"


def test_checkout_restores_the_tree_after_a_step(recorded: Project, tmp_path: Path) -> None:
    for step, names in (
        ("0", ["kept.txt"]),
        ("1", ["a.txt", "kept.txt"]),
        ("2", ["a.txt", "empty", "kept.txt", "own.txt"]),
        ("3", ["b.txt", "empty", "kept.txt", "noise.bin", "own.txt"]),
    ):
        target = tmp_path / step
        done = recorded.playhead("checkout", "last", "--at", step, str(target))
        assert done.returncode == 0, done.stderr
        assert sorted(os.listdir(target)) == names
    assert (tmp_path / "3" / "noise.bin").read_bytes() == (
        recorded.folder / "noise.bin"
    ).read_bytes()


def test_checkout_in_place_can_be_undone(recorded: Project) -> None:
    recorded.write("later.txt", "written after the run\n")
    done = recorded.playhead("checkout", "last", "--at", "1", "--in-place")
    assert sorted(os.listdir(recorded.folder)) == ["a.txt", "kept.txt"]
    undo = done.stdout.splitlines()[-1].removeprefix("Undo: playhead ").split()
    assert recorded.playhead(*undo).returncode == 0
    assert (recorded.folder / "later.txt").read_text() == "written after the run\n"
    assert "b.txt" in os.listdir(recorded.folder)


def test_checkout_in_place_leaves_files_that_an_undo_could_not_restore(recorded: Project) -> None:
    folder = recorded.folder
    recorded.write(".env.local", "KEY=later\n")
    recorded.write("keys/server.pem", "later\n")
    with open(folder / "big.dat", "wb") as file:
        file.truncate(65 << 20)
    # A pipe is not stored, and the recorded run has a file of its name.
    (folder / "kept.txt").unlink()
    os.mkfifo(folder / "kept.txt")
    # So is a pipe in a folder that took the name of a recorded file.
    (folder / "a.txt").mkdir()
    os.mkfifo(folder / "a.txt" / "pipe")

    def unstored() -> list[object]:
        files = (folder / ".env.local", folder / "keys" / "server.pem")
        return [
            *(one.read_text() for one in files),
            (folder / "big.dat").stat().st_size,
            (folder / "kept.txt").is_fifo(),
            (folder / "a.txt" / "pipe").is_fifo(),
        ]

    expected = ["KEY=later\n", "later\n", 65 << 20, True, True]
    done = recorded.playhead("checkout", "last", "--at", "1", "--in-place")
    assert unstored() == expected
    assert "b.txt" not in os.listdir(folder)
    assert "Not changed" in done.stderr
    assert ".env.local, a.txt, big.dat, kept.txt, keys/server.pem" in done.stderr
    undo = done.stdout.splitlines()[-1].removeprefix("Undo: playhead ").split()
    assert recorded.playhead(*undo).returncode == 0
    assert unstored() == expected
    assert "b.txt" in os.listdir(folder)


def test_blame_names_the_step_of_each_line_across_a_move(recorded: Project) -> None:
    told = recorded.json("blame", "last", "b.txt")
    assert [(one["text"], one["step"]) for one in told["lines"]] == [
        ("one", 1),
        ("TWO", 2),
        ("three", 1),
        ("four", 3),
    ]
    (line,) = recorded.json("blame", "last", "kept.txt")["lines"]
    assert line["step"] is None


def test_blame_follows_a_file_through_all_runs_that_changed_it(project: Project) -> None:
    sh = "import subprocess; subprocess.run(['sh', '-c', {!r}])"
    project.write("a.txt", "zero\n")
    project.record(sh.format("echo one >> a.txt"))
    project.record(sh.format("echo other > b.txt"))
    with (project.folder / "a.txt").open("a") as file:
        file.write("by hand\n")
    project.record(sh.format("echo two >> a.txt; mv a.txt c.txt"))
    with (project.folder / "c.txt").open("a") as file:
        file.write("later\n")
    runs = project.runs()
    told = project.json("blame", "c.txt")
    assert [(one["text"], one["run"], one["step"]) for one in told["lines"]] == [
        ("zero", None, None),
        ("one", runs[0], 1),
        ("by hand", None, None),
        ("two", runs[2], 1),
        ("later", None, None),
    ]
    shown = project.playhead("blame", "c.txt").stdout.splitlines()
    assert shown[0].split() == ["-", "1", "zero"]
    assert shown[1].split() == [runs[0], "#1", "2", "one"]
    (project.folder / "c.txt").unlink()
    assert [one["text"] for one in project.json("blame", "c.txt")["lines"]][-1] == "two"
    nothing = project.playhead("blame", "missing.txt")
    assert nothing.returncode == 2
    assert "No recorded run has changed missing.txt" in nothing.stderr


def test_blame_across_runs_counts_a_fork_only_if_it_was_applied(project: Project) -> None:
    project.write("word.txt", "one")
    sh = "echo $(cat word.txt) >> a.txt"
    project.record(f"import subprocess; subprocess.run(['sh', '-c', {sh!r}])")
    (run,) = project.runs()
    assert project.playhead("fork", run, "--at", "1").returncode in (0, 3)
    assert len(project.runs()) == 2
    told = project.json("blame", "a.txt")
    assert [(one["text"], one["run"]) for one in told["lines"]] == [("one", run)]
    other = project.home.parent / "other.py"
    other.write_text("import subprocess; subprocess.run(['sh', '-c', 'echo two >> a.txt'])")
    (project.folder / "a.txt").unlink()
    words = ("fork", run, "--at", "1", "--apply", "--yes", "--", sys.executable, str(other))
    done = project.playhead(*words)
    fork = project.runs()[-1]
    told = project.json("blame", "a.txt")
    assert [(one["text"], one["run"]) for one in told["lines"]] == [("two", fork)], done.stderr


def test_diff_compares_the_files_that_two_runs_left(project: Project) -> None:
    sh = "import subprocess; subprocess.run(['sh', '-c', {!r}])"
    project.write("same.txt", "same\n")
    git = "git -c user.name=a -c user.email=a@b.c"
    project.record(sh.format("echo one > a.txt; echo x > only.txt"))
    # From here on same.txt is an object of git: its content is what counts.
    script = f"rm only.txt a.txt; git init -q; git add -A; {git} commit -qm one"
    subprocess.run(["sh", "-c", script], cwd=project.folder, check=True)
    project.record(sh.format("printf 'one\\ntwo\\n' > a.txt"))
    first, second = project.runs()
    told = project.json("diff", first, second)["files"]
    assert [(one["how"], one["path"], one["added"]) for one in told["changes"]] == [
        ("modified", "a.txt", 1),
        ("deleted", "only.txt", 0),
    ]
    text = project.playhead("diff", first, second, "--patch").stdout
    assert "files: 2 differ at the end" in text
    assert "+two" in text
    assert project.json("diff", first, first)["files"]["same"] is True
    project.record("pass", "--no-workspace")
    text = project.playhead("diff", first, "last").stdout
    assert "files: not compared. This run has no workspace" in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("files", "last", "--at", "99"), "its steps are 0 (the start) to 3"),
        (("checkout", "last", "--at", "99", "x"), "There is no step 99"),
        (("checkout", "last", "--at", "1", "."), "is not empty"),
        (("checkout", "--at", "1", "new/folder"), "`playhead checkout last new/folder`"),
        (("blame", "last", "noise.bin"), "is binary"),
        (("blame", "noise.bin"), "is binary"),
        (("blame", "last", "a", "b"), "Expected [RUN] FILE"),
        (("fork", "last", "--at", "99"), "There is no step 99"),
        (("blame", "last", "missing.txt"), "has no file missing.txt"),
        (("blame", "last", "empty"), "is a folder"),
        (("checkout", "last", "--in-place", "--undo", "abc"), "The store has no files"),
    ],
)
def test_a_wrong_wish_gets_one_clear_line(
    recorded: Project, words: tuple[str, ...], said: str
) -> None:
    done = recorded.playhead(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_without_a_workspace_says_why(project: Project) -> None:
    project.record("pass", "--no-workspace")
    for words in (("files", "last"), ("checkout", "last", "x"), ("blame", "last", "a.txt")):
        done = project.playhead(*words)
        assert done.returncode == 2
        assert "has no workspace on its tape" in done.stderr
    done = project.playhead("fork", "last", "--at", "1", "--apply")
    assert done.returncode == 2
    assert "--apply needs the files of the run" in done.stderr


def test_the_home_folder_is_refused_with_a_note(project: Project) -> None:
    env = {**os.environ, "PLAYHEAD_HOME": str(project.home), "HOME": str(project.folder)}
    words = [sys.executable, "-m", "playhead"]
    argv = [*words, "record", "--quiet", "--", "true"]
    done = subprocess.run(argv, cwd=project.folder, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = subprocess.run(
        [*words, "files", "last"], cwd=project.folder, env=env, capture_output=True, check=False
    )
    assert b"it is the home folder" in done.stderr


def test_more_folders_are_recorded_where_they_are_named(project: Project, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    program = f"import subprocess; subprocess.run(['sh','-c','echo x > {tmp_path}/memory/m'])"
    project.record(program, "--workspace", str(tmp_path / "memory"))
    told = project.json("files", "last")
    assert [one["root"] for one in told["workspaces"]] == [
        str(project.folder),
        str(tmp_path / "memory"),
    ]
    assert told["steps"][0]["workspace"] == 1


def test_a_kill_of_all_leaves_what_was_acknowledged(project: Project, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, signal, subprocess\n"
        "for n in range(20):\n"
        "    subprocess.run(['sh', '-c', f'echo {n} > f{n}.txt'])\n"
        "subprocess.run(['sh', '-c', 'head -c 3000000 /dev/urandom > large.bin'])\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    env = {**os.environ, "PLAYHEAD_HOME": str(project.home)}
    argv = [sys.executable, "-m", "playhead", "record", "--", sys.executable, str(program)]
    done = subprocess.run(argv, cwd=project.folder, env=env, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    target = tmp_path / "out"
    (run,) = os.listdir(project.home / "runs")
    assert project.playhead("checkout", run, "--at", "20", str(target)).returncode == 0
    assert sorted(os.listdir(target)) == sorted(f"f{n}.txt" for n in range(20))
    # The recorder stores a large file after the call has ended. It is on the tape, or is counted as lost.
    kept = "large.bin" in project.playhead("files", run).stdout
    (checked,) = project.json("verify", run)
    assert checked["lost_file_changes"] == int(not kept)


def test_a_call_is_shown_with_the_files_it_changed(recorded: Project) -> None:
    text = recorded.playhead("show", "last", "--call", "2").stdout
    assert "Files" in text
    assert "M a.txt +1 −1" in text
    told = recorded.json("show", "last", "--call", "3")
    assert [one["path"] for one in told["files"]] == ["a.txt", "b.txt", "noise.bin"]
