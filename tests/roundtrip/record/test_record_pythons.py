"""An agent in whatever Python and environment finds everything as it was, and nothing is left there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import json, os, sys
told = {
    "path": sys.path,
    "environ": dict(os.environ),
    "sitecustomize": "sitecustomize" in sys.modules,
    "cache": [entry for entry in sys.path_importer_cache if entry.endswith("launch/guest/site")],
    "flags": str(sys.flags),
    "argv": sys.argv,
    "streams": [type(one).__name__ for one in (sys.stdin, sys.stdout, sys.stderr)],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    "stdout": [sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stdout.name],
    "gc": __import__("gc").isenabled(),
}
print(json.dumps(told, sort_keys=True))
"""


@pytest.fixture(scope="session")
def venv(guest_python, tmp_path_factory) -> Path:
    """An environment with nothing in it, not even pip."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([guest_python, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def test_an_agent_in_an_environment_without_us_is_recorded(record, venv):
    program = "import subprocess; subprocess.run(['true']); print('ok')"
    take = record(str(venv / "bin" / "python"), "-c", program)
    assert take.ended.stdout == "ok\n", take.ended.stderr
    assert take.ended.stderr.count("\n") == 1
    assert [call.data["request"]["argv"] for call in take.calls()] == [["true"]]
    assert take.damages == []


def test_nothing_is_written_into_the_agents_environment(record, venv):
    python = str(venv / "bin" / "python")
    record.bare(python, "-c", "import json, subprocess")
    before = tree(venv)
    record(python, "-c", "import json, subprocess; subprocess.run(['true'])")
    assert tree(venv) == before


@pytest.mark.parametrize("path", [None, "/one", "/one:/two", ":/one", "/one:", ""])
def test_the_program_finds_what_it_would_find_without_us(record, venv, path):
    python = str(venv / "bin" / "python")
    env = {"PYTHONPATH": path}
    bare = record.bare(python, "-c", LOOK, env=env)
    take = record(python, "-c", LOOK, env=env)
    told, expected = json.loads(take.ended.stdout), json.loads(bare.stdout)
    if path == "":
        # An empty one and none are the same to Python; which of the two it was is not kept.
        del expected["environ"]["PYTHONPATH"]
    assert told == expected


def test_a_script_has_its_folder_first_on_the_path(record, venv):
    python = str(venv / "bin" / "python")
    script = record.script("agent.py", "import sys; print(sys.path[0])")
    take = record(python, script)
    assert take.ended.stdout.strip() == str(record.folder)


def test_the_users_own_sitecustomize_runs_and_ours_is_gone(record, venv):
    record.script("sitecustomize.py", "import builtins; builtins.told = 'theirs'\n")
    program = "import sys; print(told, sys.modules['sitecustomize'].__file__)"
    take = record(*record.finding(record.folder, str(venv / "bin" / "python"), "-c", program))
    assert take.ended.stdout == f"theirs {record.folder}/sitecustomize.py\n", take.ended.stderr
    assert len(take.processes) == 1


def test_a_broken_sitecustomize_is_reported_as_python_reports_it(record, venv):
    record.script("sitecustomize.py", "raise ValueError('theirs')\n")
    command = record.finding(record.folder, str(venv / "bin" / "python"), "-c", "print('on')")
    bare = record.bare(*command)
    take = record(*command)
    assert take.ended.stdout == bare.stdout == "on\n"
    assert take.ended.stderr.startswith(bare.stderr)
    assert "ValueError: theirs" in bare.stderr


def test_a_playhead_of_the_agents_own_gives_way_to_ours(record, venv):
    folder = record.folder / "theirs" / "playhead"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__version__ = 'theirs'\n")
    program = (
        "import playhead; print(playhead.__version__ != 'theirs', playhead.current().id != '')"
    )
    take = record(*record.finding(folder.parent, str(venv / "bin" / "python"), "-c", program))
    assert take.ended.stdout == "True True\n"


def test_a_library_of_the_agents_own_that_we_use_too_is_the_agents(record, venv):
    """msgspec is used where the agent has it; a module of that name may be anything."""
    record.script("msgspec.py", "told = 'theirs'\n")
    program = "import msgspec; print(msgspec.told)"
    take = record(*record.finding(record.folder, str(venv / "bin" / "python"), "-c", program))
    assert take.ended.stdout == "theirs\n", take.ended.stderr
    assert take.manifest.lost == 0


def test_the_seed_of_hashes_is_kept_and_hidden(record, venv):
    program = """
import os, subprocess, sys
print(os.environ.get('PYTHONHASHSEED'), hash('word'), flush=True)
subprocess.run([sys.executable, '-c', "import os; print(os.environ.get('PYTHONHASHSEED'), hash('word'))"])
"""
    python = str(venv / "bin" / "python")
    take = record(python, "-c", program)
    first, second = take.ended.stdout.splitlines()
    assert first == second
    assert first.startswith("None ")
    seed = take.of("run.start")[0].data["hash_seed"]
    same = record.bare(python, "-c", "print('None', hash('word'))", env={"PYTHONHASHSEED": seed})
    assert same.stdout.strip() == first


HEAVY = {
    *("asyncio", "concurrent.futures", "ctypes", "dataclasses", "datetime", "decimal", "email"),
    *("hashlib", "http", "importlib.abc", "inspect", "logging", "msgspec", "platform", "socket"),
    *("sqlite3", "ssl", "subprocess", "tempfile", "urllib.request", "uuid", "playhead.llm"),
    *("playhead.recording.calls", "playhead.event", "playhead.replay", "playhead.tape.reader"),
}


def test_a_process_that_does_nothing_does_not_wait_for_what_it_does_not_use(record, venv):
    take = record(str(venv / "bin" / "python"), "-c", "import sys; print(*sys.modules)")
    loaded = set(take.ended.stdout.split())
    assert "playhead.recording.recorder" in loaded
    assert loaded & HEAVY == set()


def old_pythons() -> list[str]:
    found = (Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions").glob("*")
    old = ("2.7.", "3.6.", "3.7.", "3.8.", "3.9.")
    return [str(one / "bin" / "python") for one in found if one.name.startswith(old)]


def test_a_python_that_is_too_old_for_us_runs_unharmed_and_is_a_hole(record):
    for number, python in enumerate(old_pythons()):
        program = "import sys; sys.stdout.write('on\\n')"
        take = record(python, "-c", program, options=["--json", "--run-id", f"old-{number}"])
        assert take.ended.stdout == "on\n"
        assert json.loads(take.ended.stderr)["holes"] == 1


def test_an_interpreter_that_is_asked_about_itself_answers_with_nothing_but_the_answer(record):
    """uv reads the answer from stdout, and takes anything else there for a broken interpreter."""
    program = "import json, sys; json.dump({'version': sys.version_info[:2]}, sys.stdout)"
    for flags in ([], ["-I"], ["-B"], ["-S"]):
        bare = record.bare(sys.executable, *flags, "-c", program)
        shell = ["sh", "-c", 'exec "$@"', "sh", sys.executable, *flags, "-c", program]
        take = record(*shell, options=["--run-id", f"asked{''.join(flags)}"])
        assert take.ended.stdout == bare.stdout


def test_a_start_that_starts_pythons_does_not_start_them_for_ever(record):
    record.script(
        "sitecustomize.py",
        "import os, subprocess, sys\n"
        "if 'INNER' not in os.environ:\n"
        "    subprocess.run([sys.executable, '-c', 'print(1)'], env={**os.environ, 'INNER': '1'})\n",
    )
    take = record(*record.finding(record.folder, sys.executable, "-c", "print(2)"))
    assert take.ended.stdout == "1\n2\n", take.ended.stderr
    assert len(take.processes) == 2
