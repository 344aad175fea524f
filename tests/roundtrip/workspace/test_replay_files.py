"""Replays find the files of the recording, and leave the real ones alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.roundtrip.workspace.conftest import Project
from tests.unit.workspace.conftest import GIT, fingerprint

COMMITTER = """
import os, subprocess
GIT = "git -c user.name=a -c user.email=a@b.c"
def sh(script):
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout
sh(f"git init -q . && git add -A && {GIT} commit -qm one")
sh("sed -i 's/old/new/' src/app.py; ln -s src/app.py link; chmod 755 src/app.py; mkdir empty")
with open("log.txt", "a") as log:
    log.write("my own line\\n")
sh("echo from a tool >> log.txt")
sh(f"git add -A && {GIT} commit -qm two")
print(open("src/app.py").read(), open("log.txt").read(), sorted(os.listdir(".")))
print(oct(os.stat("link").st_mode), os.path.exists(".git/refs/heads"))
print(len(os.listdir(".git/objects")))
"""


def replay(project: Project, *options: str, cwd: Path | None = None) -> dict[str, Any]:
    report = project.home.parent / "report.json"
    report.unlink(missing_ok=True)
    (run,) = (
        one.name
        for one in (project.home / "runs").iterdir()
        if "replay_of" not in json.loads((one / "manifest.json").read_text())
        or not json.loads((one / "manifest.json").read_text()).get("replay_of")
    )
    done = project.playhead(
        "replay", run, "--no-persist", "--report", str(report), *options, cwd=cwd or project.folder
    )
    assert report.exists(), done.stderr
    told: dict[str, Any] = json.loads(report.read_text())
    told["stderr"] = done.stderr
    return told


@pytest.fixture
def committed(project: Project) -> Project:
    project.write("src/app.py", "old\n")
    project.write("log.txt", "first\n")
    project.record(COMMITTER)
    return project


def test_a_commit_from_the_tape_leaves_the_commit_behind(committed: Project) -> None:
    before = fingerprint(committed.folder)
    for _ in range(2):
        told = replay(committed)
        assert told["verdict"] == "identical", told["stderr"]
        assert told["files"]["same"] is True
        assert fingerprint(committed.folder) == before


def test_a_workspace_that_changed_meanwhile_does_not_matter(committed: Project) -> None:
    committed.write("src/app.py", "something else\n")
    committed.write("more/new.txt", "new\n")
    committed.write("more/__pycache__/new.cpython-311.pyc", "left out of snapshots\n")
    subprocess.run(["git", "checkout", "-q", "--orphan", "other"], cwd=committed.folder, check=True)
    before = fingerprint(committed.folder)
    told = replay(committed)
    assert told["verdict"] == "identical", told["stderr"]
    assert fingerprint(committed.folder) == before


def test_a_workspace_that_was_deleted_does_not_matter(committed: Project, tmp_path: Path) -> None:
    shutil.rmtree(committed.folder)
    told = replay(committed, cwd=tmp_path)
    assert told["verdict"] == "identical", told["stderr"]
    assert not committed.folder.exists()


def test_shims_serve_a_command_whose_folder_was_deleted(project: Project, tmp_path: Path) -> None:
    project.write("data.txt", "then\n")
    script = "date +%N; cd sub; date +%N"
    (project.folder / "sub").mkdir()
    words = ("record", "--quiet", "--shim", "date", "--", "sh", "-c", script)
    assert project.playhead(*words).returncode == 0
    shutil.rmtree(project.folder)
    told = replay(project, cwd=tmp_path)
    assert told["verdict"] == "identical", told["stderr"]


@pytest.mark.parametrize("command", [("python", "agent.py"), ("sh", "run.sh")])
def test_the_code_of_today_runs_on_the_files_of_the_recording(
    command: tuple[str, ...], project: Project
) -> None:
    project.write("run.sh", "AGENT=agent\npython $AGENT.py\n")
    project.write("data.txt", "then\n")
    project.write("helper.py", "WORD = 'one'\n")
    agent = "import helper, time\ntime.time()\nprint(helper.WORD, open('data.txt').read())\n"
    project.write("agent.py", agent)
    assert project.playhead("record", "--quiet", "--", *command).returncode == 0
    project.write("data.txt", "now\n")
    assert replay(project)["verdict"] == "identical"
    project.write("helper.py", "import extra\nWORD = extra.WORD\n")
    project.write("extra.py", "WORD = 'two'\n")
    told = replay(project)
    assert told["verdict"] == "diverged"
    assert [one["kind"] for one in told["divergences"]] == ["output"]
    assert "'one then' → 'two then'" in told["divergences"][0]["detail"]
    assert told["files"]["code"] == ["extra.py", "helper.py"]


def test_a_file_edited_since_the_recording_is_named_with_what_to_do(project: Project) -> None:
    for name in ("prompt.txt", "log.txt", "gone.txt"):
        project.write(name, "then\n")
    project.record("open('log.txt', 'a').write('more\\n'); print(open('prompt.txt').read())")
    told = replay(project)
    assert told["files"]["unused_edits"] == []
    assert "not used" not in told["stderr"]
    project.write("prompt.txt", "now\n")
    project.write("added.txt", "now\n")
    (project.folder / "gone.txt").unlink()
    told = replay(project)
    assert told["verdict"] == "identical"
    assert told["files"]["unused_edits"] == ["prompt.txt", "added.txt", "gone.txt"]
    said = " ".join(told["stderr"].split())
    assert "not used: prompt.txt, added.txt, gone.txt changed since the recording" in said
    assert "To replay with the current files: --in-place." in said


def test_a_workspace_that_is_gone_is_not_called_edited(project: Project, tmp_path: Path) -> None:
    project.write("prompt.txt", "then\n")
    project.record("print(open('prompt.txt').read())")
    shutil.rmtree(project.folder)
    assert replay(project, cwd=tmp_path)["files"]["unused_edits"] == []


def test_a_file_that_the_program_writes_otherwise_is_a_divergence(project: Project) -> None:
    project.record("open('out.txt', 'w').write(open('/proc/self/stat').read())")
    told = replay(project)
    assert told["verdict"] == "diverged"
    assert told["divergences"][0]["detail"] == "Files differ from the recorded ones: out.txt."


def test_an_agent_with_a_database_replays_again_and_again(project: Project) -> None:
    program = """
import sqlite3
with sqlite3.connect("thread.db") as database:
    database.execute("CREATE TABLE IF NOT EXISTS turns (said TEXT)")
    database.execute("INSERT INTO turns VALUES ('hello')")
    print(database.execute("SELECT count(*) FROM turns").fetchone())
"""
    project.record("pass", "--no-workspace")
    shutil.rmtree(project.home / "runs")
    project.record(program)
    before = fingerprint(project.folder)
    for _ in range(3):
        told = replay(project)
        assert told["verdict"] == "identical", told["stderr"]
    assert fingerprint(project.folder) == before


REMEMBERS = """
import sqlite3, sys
path = {path!r}
with sqlite3.connect(path) as database:
    database.execute("PRAGMA journal_mode={mode}")
    database.execute("CREATE TABLE IF NOT EXISTS turns (said TEXT)")
    database.execute("INSERT INTO turns VALUES ('hello')")
    print(database.execute("SELECT count(*) FROM turns").fetchone())
"""


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("place", ["thread.db", "ignored/thread.db", "../elsewhere/thread.db"])
def test_a_durable_thread_replays_again_and_again_with_its_database_untouched(
    project: Project, tmp_path: Path, place: str, mode: str
) -> None:
    """Inside the project, in a folder that git ignores, and outside."""
    subprocess.run(["git", "init", "-q", "."], cwd=project.folder, check=True)
    project.write(".gitignore", "ignored/\n")
    path = (project.folder / place).resolve()
    path.parent.mkdir(exist_ok=True)
    program = REMEMBERS.format(path=str(path), mode=mode)
    project.record(program)
    shutil.rmtree(project.home / "runs")
    # The second run finds the first one's row; the replays find the second one's, and must not.
    project.record(program)
    before = fingerprint(path.parent)
    for options in ((), (), ("--live", "llm"), ("--live", "llm")):
        told = replay(project, *options)
        assert told["verdict"] == "identical", told["stderr"]
        assert told["output_same"] is True
        assert fingerprint(path.parent) == before


def test_a_file_that_the_program_writes_elsewhere_is_found_as_it_was(
    project: Project, tmp_path: Path
) -> None:
    memory = tmp_path / "elsewhere" / "memory.json"
    memory.parent.mkdir()
    memory.write_text("[1]")
    project.record(
        "import json, os\n"
        f"path = {str(memory)!r}\n"
        "found = json.load(open(path))\n"
        "is_first = not os.path.exists(path + '.seen')\n"
        "open(path, 'w').write(json.dumps([*found, len(found) + 1]))\n"
        "open(path + '.seen', 'a').write('x')\n"
        "print(found, is_first)\n"
    )
    assert memory.read_text() == "[1, 2]"
    for _ in range(2):
        told = replay(project)
        assert told["verdict"] == "identical", told["stderr"]
    assert memory.read_text() == "[1, 2]"


def test_a_secret_that_the_program_writes_elsewhere_is_not_on_the_tape(
    project: Project, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    contents = {
        "auth.json": "opaque-sign-in-of-a-person",
        ".netrc": "machine example.com password opaque-too",
        "notes.txt": "key: sk-ant-api03-" + "Zm9vYmFyYmF6cXV4" * 6,
        "plain.txt": "nothing hidden",
    }
    for name, text in contents.items():
        (folder / name).write_text(text)
    project.record(
        "import os\n"
        f"for name in {sorted(contents)!r}:\n"
        f"    open(os.path.join({str(folder)!r}, name), 'a').write('x')\n",
        "--no-seal",
    )
    stored = b"".join(one.read_bytes() for one in project.home.rglob("*") if one.is_file())
    for name, text in contents.items():
        is_there = any(one in stored for one in (text.encode(), base64.b64encode(text.encode())))
        assert is_there is (name == "plain.txt"), name


def test_a_secret_file_that_has_changed_is_named_and_does_not_count_as_a_difference(
    project: Project,
) -> None:
    project.write(".env", "KEY=first\n")
    project.record(
        "import subprocess\n"
        "subprocess.run('echo KEY=second > .env; echo done > out.txt', shell=True, check=True)\n"
        "print(open('out.txt').read())\n"
    )
    for content in ("KEY=first\n", "KEY=third\n"):
        project.write(".env", content)
        told = replay(project)
        assert told["verdict"] == "identical", told["stderr"]
        assert told["files"]["not_restored"] == [".env"]
        assert "not restored: .env. The content is not on the tape" in told["stderr"]
        assert "not used" not in told["stderr"]
        assert (project.folder / ".env").read_text() == content


def test_in_place_replays_with_the_files_of_today(project: Project) -> None:
    project.write("data.txt", "then\n")
    project.record("print(open('data.txt').read())")
    project.write("data.txt", "now\n")
    assert replay(project)["verdict"] == "identical"
    assert replay(project, "--in-place")["verdict"] == "diverged"


def test_a_tape_without_its_blobs_replays_with_the_files_that_are_there(project: Project) -> None:
    project.write("data.txt", "then\n")
    project.record("print(open('data.txt').read())")
    shutil.rmtree(project.home / "blobs")
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"] is None


def test_names_that_are_not_text_are_replayed(project: Project) -> None:
    name = os.fsdecode(b"a\nb\xff.txt")
    project.record(
        "import subprocess, os\n"
        "subprocess.run([b'sh', b'-c', b'echo x > \"$0\"', b'a\\nb\\xff.txt'])\n"
        "print(ascii(os.listdir('.')))\n"
    )
    (project.folder / name).unlink()
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]


def test_a_fork_finds_the_files_of_its_step(project: Project) -> None:
    project.record(
        "import subprocess\n"
        "for n in range(1, 6):\n"
        "    subprocess.run(['sh', '-c', f'echo {n} >> steps.txt; rm -f only{n - 1}; touch only{n}'])\n"
        "    print(n, open('steps.txt').read().split(), flush=True)\n"
    )
    (project.folder / "steps.txt").write_text("today\n")
    before = fingerprint(project.folder)
    for step in (2, 4):
        done = project.playhead("fork", "last", "--at", str(step), "--no-persist")
        seen = done.stdout.splitlines()[: step - 1]
        numbers = [str(one) for one in range(1, step)]
        assert seen[-1] == f"{step - 1} {numbers}", done.stderr
        assert f"files: as they were before step {step}" in done.stderr
    assert fingerprint(project.folder) == before


OWN_DATABASE = """
import sqlite3, subprocess, threading
rows = sqlite3.connect("memory.db", check_same_thread=False)
rows.execute("create table if not exists kept (n)")
log, lock = open("agent.log", "a", buffering=1), threading.Lock()

def work(n):
    subprocess.run(["sh", "-c", f"echo {n} > part-{n}.txt; sleep 0.0{n}"], check=True)
    with lock:
        rows.execute("insert into kept values (?)", (n,))
        rows.commit()
        log.write(f"{n}\\n")

threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
for one in threads:
    one.start()
for one in threads:
    one.join()
log.close()
print(rows.execute("select count(*) from kept").fetchone(), len(open("agent.log").readlines()))
"""


def test_what_the_program_writes_while_a_call_runs_is_not_written_twice(project: Project) -> None:
    project.record(OWN_DATABASE)
    for _ in range(2):
        again = project.playhead("replay", "last")
        assert again.returncode == 0, again.stderr
        assert "(5,) 5" in again.stdout


BESIDE_A_CALL = """
import os, pathlib, sqlite3, subprocess
child = subprocess.Popen(["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo hi > child.txt"])
with sqlite3.connect("orders.db") as rows:
    rows.execute("create table orders (id primary key)")
    rows.execute("insert into orders values (1)")
rows.close()
with open("agent.log", "a") as log:
    log.write("ordered\\n")
pathlib.Path("new.txt").write_text("new")
os.replace("new.txt", "kept.txt")
os.mkdir("made")
pathlib.Path("go").touch()
child.wait()
pathlib.Path("go").unlink()
print(open("agent.log").read(), open("child.txt").read(), os.listdir("made"))
"""


def test_files_that_the_program_opens_and_closes_while_a_call_runs_belong_to_the_program(
    project: Project,
) -> None:
    project.record(BESIDE_A_CALL)
    for _ in range(2):
        again = project.playhead("replay", "last")
        assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(("item", "code"), [("cup", 0), ("plate", 3)])
def test_a_database_with_moments_of_its_own_clock_is_compared_by_its_rows(
    project: Project, item: str, code: int
) -> None:
    project.record("""
import os, sqlite3
with sqlite3.connect("orders.db") as rows:
    rows.execute("create table orders (item, at timestamp default CURRENT_TIMESTAMP)")
    item = os.environ.get("ITEM", "cup")
    rows.execute("insert into orders values (?, strftime('%Y-%m-%d %H:%M:%f'))", (item,))
rows.close()
""")
    again = project.playhead("replay", "last", "--env", f"ITEM={item}")
    assert again.returncode == code, again.stderr


def test_changes_of_calls_that_ran_at_once_end_with_the_latest(project: Project) -> None:
    # The log belongs to `tee`, which runs all the time, and in part to each of the others.
    script = (
        "for n in 1 2 3; do echo $n; sleep 0.02; sh -c 'sleep 0.03'; done | tee all.log >/dev/null"
    )
    project.record(f"""
import subprocess, threading
def run(script):
    subprocess.run(["sh", "-c", script], check=True)
threads = [threading.Thread(target=run, args=(one,)) for one in ({script!r}, "sleep 0.05", "sleep 0.08")]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(open("all.log").read())
""")
    again = project.playhead("replay", "last")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("again", ["out.txt", "other.txt", "earlier.txt"])
def test_the_file_that_the_output_goes_to_is_not_a_file_of_the_run(
    project: Project, again: str
) -> None:
    project.write("earlier.txt", "output of an earlier replay\n")
    program = project.folder / "agent.py"
    program.write_text("open('kept.txt', 'w').write('x')\nprint('hello')\n")
    for name, words in (
        ("out.txt", ["record", "--", sys.executable, "agent.py"]),
        (again, ["replay", "last"]),
    ):
        with open(project.folder / name, "w") as output:
            done = project.playhead(*words, stdout=output)
        assert done.returncode == 0, done.stderr
    assert "files: identical" in done.stderr
    assert "not used" not in done.stderr


@pytest.mark.parametrize(
    "command", [("sh", "go.sh"), ("python", "agent.py"), ("python", "-m", "pack")]
)
def test_a_program_that_was_deleted_with_its_project_comes_back(
    command: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    project.write("go.sh", "date +%N > time.txt\ncat time.txt\n")
    project.write("agent.py", "import pack.part\nprint(pack.part.WORD)\n")
    project.write("pack/__init__.py", "")
    project.write("pack/__main__.py", "from pack.part import WORD\nprint(WORD)\n")
    project.write("pack/part.py", "WORD = 'then'\n")
    assert project.playhead("record", "--quiet", "--", *command).returncode == 0
    shutil.rmtree(project.folder)
    told = replay(project, cwd=tmp_path)
    assert told["verdict"] == "identical", told["stderr"]
    assert not project.folder.exists()


def test_a_memory_that_is_replaced_elsewhere_is_found_as_it_was(
    project: Project, tmp_path: Path
) -> None:
    """The file itself is never opened for writing: another one is moved over it."""
    memory = tmp_path / "elsewhere" / "memory.json"
    memory.parent.mkdir()
    memory.write_text("[1]")
    project.record(
        "import json, os, pathlib\n"
        f"path = {str(memory)!r}\n"
        "found = json.load(open(path))\n"
        "pathlib.Path(path + '.new').write_text(json.dumps([*found, 2]))\n"
        "os.replace(path + '.new', path)\n"
        "print(found)\n"
    )
    for _ in range(2):
        told = replay(project)
        assert told["verdict"] == "identical", told["stderr"]
    assert memory.read_text() == "[1, 2]"


def test_a_memory_elsewhere_that_a_served_tool_changed_is_changed_again(
    project: Project, tmp_path: Path
) -> None:
    memory = tmp_path / "elsewhere" / "memory.txt"
    memory.parent.mkdir()
    memory.write_text("first\n")
    project.record(
        "import playhead\n"
        f"path = {str(memory)!r}\n"
        "@playhead.tool\n"
        "def remember(word):\n"
        "    with open(path, 'a') as file:\n"
        "        file.write(word)\n"
        "for word in 'abc':\n"
        "    remember(word)\n"
        "    print(open(path).read())\n"
    )
    before = fingerprint(memory.parent)
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"]["changed"] == 1
    assert fingerprint(memory.parent) == before
    shutil.rmtree(memory.parent)
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert not memory.parent.exists()


def test_files_elsewhere_that_only_a_subprocess_writes_are_there_when_the_program_reads_them(
    project: Project, tmp_path: Path
) -> None:
    """In an existing folder, in folders that the subprocess makes, in a temporary folder, over a temporary file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "old.txt").write_text("old\n")
    project.record(
        "import os, subprocess, tempfile\n"
        f"there = {str(elsewhere)!r}\n"
        "def sh(script):\n"
        "    subprocess.run(['sh', '-c', script], cwd=there, check=True)\n"
        "def show(*names):\n"
        "    print([open(os.path.join(there, one)).read() for one in names])\n"
        "sh('echo 1 > notes.txt; mkdir -p deep/er; echo d > deep/er/d.txt; echo new >> old.txt')\n"
        "show('notes.txt', 'deep/er/d.txt', 'old.txt')\n"
        "sh('echo 2 >> notes.txt')\n"
        "show('notes.txt')\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    with open(f'{folder}/in.txt', 'w') as file:\n"
        "        file.write('in')\n"
        "    sh(f'cp {folder}/in.txt {folder}/out.txt; echo formatted > {folder}/in.txt')\n"
        "    show(f'{folder}/in.txt', f'{folder}/out.txt')\n"
        "handle, name = tempfile.mkstemp()\n"
        "os.close(handle)\n"
        "sh(f'echo result > {name}')\n"
        "show(name)\n"
        "os.unlink(name)\n"
    )
    shutil.rmtree(elsewhere)
    elsewhere.mkdir()
    (elsewhere / "old.txt").write_text("of today\n")
    before = fingerprint(elsewhere)
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert fingerprint(elsewhere) == before


def test_a_folder_that_is_not_recorded_does_not_hide_the_files_that_the_program_writes(
    project: Project, tmp_path: Path
) -> None:
    """The home folder is refused as a workspace; a memory in it is on the tape all the same."""
    project.record(
        "import playhead\n"
        "@playhead.tool\n"
        "def remember():\n"
        "    open('memory.txt', 'a').write('x')\n"
        "remember()\n"
        "print(open('memory.txt').read())\n",
        "--no-workspace",
    )
    (project.folder / "memory.txt").unlink()
    shutil.rmtree(project.home / "runs")
    program = project.home.parent / "agent.py"
    done = project.playhead(
        *("record", "--quiet", "--", "env", f"HOME={project.folder}", sys.executable, str(program))
    )
    assert done.returncode == 0, done.stderr
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]


def test_files_that_threads_write_while_other_threads_run_calls_are_written_once(
    project: Project,
) -> None:
    project.record(
        "import subprocess, threading\n"
        "def work(n):\n"
        "    for turn in range(3):\n"
        "        open(f't{n}', 'a').write(f'{turn} ')\n"
        "        script = f'cat t{n}; echo s >> t{n}'\n"
        "        done = subprocess.run(['sh', '-c', script], capture_output=True, text=True)\n"
        "        open(f'o{n}', 'a').write(done.stdout)\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "[one.start() for one in threads]\n"
        "[one.join() for one in threads]\n"
        "print([open(f'{kind}{n}').read() for n in range(4) for kind in 'to'])\n"
    )
    for _ in range(2):
        told = replay(project)
        assert told["verdict"] == "identical", told["stderr"]
        assert told["files"]["same"] is True


def test_a_log_that_the_program_and_its_calls_append_to_has_the_lines_of_both(
    project: Project,
) -> None:
    project.record(
        "import subprocess\n"
        "log = open('log.txt', 'a')\n"
        "for turn in range(3):\n"
        "    log.write(f'own {turn}\\n')\n"
        "    log.flush()\n"
        "    subprocess.run(['sh', '-c', 'echo call >> log.txt'], check=True)\n"
        "print(open('log.txt').read())\n"
    )
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"]["same"] is True


def test_an_ignored_output_that_is_read_back_later_comes_back(
    project: Project, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=project.folder, check=True)
    project.write(".gitignore", "build/\n")
    project.write("build/old.txt", "old")
    project.record(
        "import os, subprocess\n"
        "script = 'mkdir -p build/sub; date +%N > build/sub/out.txt; cat build/sub/out.txt'\n"
        "print(subprocess.run(['sh', '-c', script], capture_output=True, text=True).stdout)\n"
        "print(open('build/sub/out.txt').read(), sorted(os.listdir('build')))\n"
    )
    project.write("build/sub/out.txt", "of today")
    project.write("build/new.txt", "of today")
    for _ in range(2):
        told = replay(project, cwd=tmp_path)
        assert told["verdict"] == "identical", told["stderr"]
        assert told["files"]["same"] is True
        shutil.rmtree(project.folder, ignore_errors=True)


# Run by a shell script beside `cat`, which is a call: the lines are the program's own, and a replay writes them again.
APPENDS = """
import sys
for path in sys.argv[1:]:
    with open(path, "a") as log:
        log.write("mine\\n")
print("done")
"""
# A tool that runs tools of its own: a replay serves it whole, so what those changed is the outer one's.
NESTED = """
import subprocess, sys
if len(sys.argv) > 1:
    subprocess.run("date +%N > made.txt; sleep 0.1", shell=True)
    open(sys.argv[1], "a").write("inner\\n")
    subprocess.run("date +%N > again.txt", shell=True)
else:
    subprocess.run([sys.executable, __file__, "../nested.log"])
    print(open("made.txt").read(), open("again.txt").read(), open("../nested.log").read())
"""


def test_files_of_pythons_in_a_script_and_of_pythons_in_calls_are_written_once(
    project: Project,
) -> None:
    beside = project.home.parent
    (beside / "appends.py").write_text(APPENDS)
    (beside / "nested.py").write_text(NESTED)
    python = sys.executable
    appends = f"{python} ../appends.py inside.log ../outside.log"
    (beside / "agent.sh").write_text(
        f"{appends} | cat\n{appends} & {appends} & wait\nsed -i s/mine/yours/ inside.log\n"
        f"{python} ../nested.py\ncat inside.log ../outside.log\n"
    )
    done = project.playhead("record", "--quiet", "--", "bash", str(beside / "agent.sh"))
    assert done.stdout.count("yours") == done.stdout.count("mine") == 3, done.stdout + done.stderr
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert (beside / "nested.log").read_text() == "inner\n"


def test_a_linked_workspace_with_a_submodule_replays_after_it_was_deleted(
    project: Project, tmp_path: Path
) -> None:
    library, link, out = tmp_path / "library", tmp_path / "link", tmp_path / "out"
    library.mkdir()
    script = """
        git init -q . && echo one > lib.txt && git add -A && git commit -qm one
        cd ../project && git init -q . && git -c protocol.file.allow=always submodule --quiet add ../library sub
        git commit -qm start
    """
    subprocess.run(["sh", "-ec", script], cwd=library, env={**os.environ, **GIT}, check=True)
    link.symlink_to(project.folder)
    program = tmp_path / "agent.py"
    program.write_text(
        "import subprocess\n"
        "for one in ('cd sub; echo two >> lib.txt; git commit -qam two', 'git commit -qam bump',"
        " 'cd sub; git log --format=%s; cat lib.txt; git -C .. submodule status | wc -l'):\n"
        "    print(subprocess.run(['sh', '-c', one], capture_output=True, text=True))\n"
    )
    env = {**os.environ, **GIT, "PLAYHEAD_HOME": str(project.home)}
    argv = [sys.executable, "-m", "playhead", "record", "--quiet", "--", sys.executable]
    done = subprocess.run(
        [*argv, str(program)], cwd=link, env=env, capture_output=True, text=True, check=True
    )
    assert "two\\none\\none\\ntwo\\n1\\n" in done.stdout
    (run,) = project.runs()
    assert project.playhead("checkout", run, str(out)).returncode == 0
    assert fingerprint(out) == fingerprint(project.folder)
    shutil.rmtree(project.folder)
    link.unlink()
    told = replay(project, cwd=tmp_path)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"]["same"] is True


SOCKETS = """
import os, socket, subprocess
listener = socket.socket(socket.AF_UNIX)
listener.bind("sock")
os.mkfifo("own-pipe")
print(os.path.exists("pipe"), os.path.exists("old-pipe"))
subprocess.run("mkfifo pipe; echo done > done", shell=True, check=True)
"""


def test_sockets_and_pipes_that_the_run_left_behind_are_not_in_the_way_of_a_replay(
    project: Project,
) -> None:
    os.mkfifo(project.folder / "old-pipe")
    project.record(SOCKETS)
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    left = {"sock", "own-pipe", "pipe", "old-pipe"}
    assert left <= set(os.listdir(project.folder))


DROPPED = """
import os
for number in range(6):
    os.popen(f"echo {number} > a{number}").read()
    os.system(f"rm a{number}; echo {number} > b{number}")
# Its output ends before it does, and the program ends before it notices that.
print(os.popen("cat b*; exec >&- 2>&-; sleep 3").read())
"""


def test_a_process_that_is_read_and_dropped_has_its_own_files_and_its_whole_output(
    project: Project,
) -> None:
    project.record(DROPPED)
    steps = project.json("files", "last")["steps"]
    found = [(one["calls"], [change["path"] for change in one["changes"]]) for one in steps]
    expected = []
    for number in range(6):
        expected.append(([2 * number + 1], [f"a{number}"]))
        expected.append(([2 * number + 2], [f"a{number}", f"b{number}"]))
    assert found == expected
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]


TOUCHES = """
import os, subprocess
def sh(script):
    subprocess.run(script, shell=True, check=True)
print(os.stat("stamp").st_mtime_ns)
sh("touch -d 2001-02-03T04:05:06.789Z stamp")
print(os.stat("stamp").st_mtime_ns)
sh("cp stamp again; mv again stamp; echo more > other")
print(os.stat("stamp").st_mtime_ns)
"""


def test_a_call_that_changes_only_the_time_of_a_file_changes_it_in_a_replay_and_in_a_checkout(
    project: Project, tmp_path: Path
) -> None:
    project.write("stamp", "same\n")
    project.record(TOUCHES)
    steps = project.json("files", "last")["steps"]
    assert [(one["step"], [c["path"] for c in one["changes"]]) for one in steps] == [(2, ["other"])]
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"]["same"] is True
    times = []
    for step in ("0", "1", "2"):
        target = tmp_path / f"at{step}"
        project.playhead("checkout", "last", "--at", step, str(target))
        times.append((target / "stamp").stat().st_mtime_ns)
    assert times[1] == 981173106789000000
    assert times[2] == (project.folder / "stamp").stat().st_mtime_ns
    assert len(set(times)) == 3
