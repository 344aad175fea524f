"""Children of the program join the run, however they are started and whatever is kept from them."""

import subprocess
import sys

import pytest

CHILD = "import subprocess; subprocess.run(['true'])"


def python_calls(take):
    return [one for one in take.calls() if one.data["request"].get("argv", [""])[0] != "true"]


def test_a_child_hangs_under_the_call_that_started_it_in_a_lane_of_its_own(record):
    program = f"import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-c', {CHILD!r}])"
    take = record(sys.executable, "-c", program)
    main, first, second = take.processes
    assert main.lane == "main"
    assert (first.lane, second.lane) == ("main/p1", "main/p2")
    assert [first.parent, second.parent] == [call.ref for call in python_calls(take)]
    # What the children did is under them.
    assert [call.lane for call in take.calls() if call.data["request"]["argv"] == ["true"]] == [
        "main/p1",
        "main/p2",
    ]


def test_children_of_children_join_too(record):
    innermost = [sys.executable, "-c", CHILD]
    middle = [sys.executable, "-c", f"import subprocess; subprocess.run({innermost!r})"]
    take = record(sys.executable, "-c", f"import subprocess; subprocess.run({middle!r})")
    assert [one.lane for one in take.processes] == ["main", "main/p1", "main/p1/p1"]
    assert take.of("hole") == []


@pytest.mark.parametrize(
    "env",
    [
        "{}",
        "{'PATH': '/usr/bin:/bin'}",
        "{'PYTHONPATH': '/somewhere'}",
        "{b'PATH': b'/usr/bin:/bin'}",
        "dict(__import__('os').environ)",
        "None",
    ],
)
def test_a_child_with_an_environment_of_its_own_joins(record, env):
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {CHILD!r}], env={env})"
    )
    take = record(sys.executable, "-c", program)
    assert [one.lane for one in take.processes] == ["main", "main/p1"]


def test_a_child_finds_the_environment_that_it_was_given_and_nothing_of_ours(record):
    look = "import os, json; print(json.dumps(dict(os.environ)))"
    program = f"""
import json, subprocess, sys
env = {{'A': '1', 'PYTHONPATH': '/somewhere', 'LC_CTYPE': 'C.UTF-8'}}
told = subprocess.run([sys.executable, '-c', {look!r}], env=env, stdout=subprocess.PIPE).stdout
print(json.loads(told) == env)
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == "True\n"
    assert len(take.processes) == 2


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-IB"], ["-B", "-E"], ["-Es"], ["-sE", "-u"]])
def test_a_child_that_closes_itself_to_variables_joins_and_finds_what_it_would_find(record, flags):
    look = """
import json, os, sys
told = [sys.path, dict(os.environ), sys.flags.no_user_site, sys.flags.safe_path, sys.argv]
print(json.dumps(told, sort_keys=True))
"""
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, *{flags!r}, '-c', {look!r}])"
    )
    env = {"PYTHONPATH": "/somewhere", "PYTHONOPTIMIZE": "1"}
    bare = record.bare(sys.executable, "-c", program, env=env)
    take = record(sys.executable, "-c", program, env=env)
    assert take.ended.stdout == bare.stdout, take.ended.stderr
    assert len(take.processes) == 2
    assert take.of("hole") == []
    assert python_calls(take)[0].data["request"]["argv"][1 : 1 + len(flags)] == flags


def test_a_command_that_closes_itself_to_variables_is_recorded(record):
    for flag in ("-I", "-E"):
        take = record(sys.executable, flag, "-c", CHILD, options=["--run-id", f"run{flag}"])
        assert take.ended.returncode == 0
    runs = sorted(path.name for path in (record.home / "runs").iterdir())
    assert runs == ["run-E", "run-I"]


@pytest.mark.parametrize("where", ["command", "child"])
def test_a_python_that_runs_without_site_is_a_hole_that_is_said(record, where):
    if where == "command":
        take = record(sys.executable, "-S", "-c", "pass")
    else:
        take = record(
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'pass'])",
        )
    (hole,) = take.of("hole")
    assert hole.data["boundary"] == "process"
    assert "-S" in hole.data["why"]
    assert "1 hole" in take.ended.stderr


START = """
import subprocess, sys
import multiprocessing

def work(word):
    subprocess.run([word])

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work, args=("true",)) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print([worker.exitcode for worker in workers])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_join_and_close_their_segments(record, method):
    take = record(sys.executable, record.script("agent.py", START), method)
    assert take.ended.stdout == "[0, 0]\n", take.ended.stderr
    made = [call for call in take.calls() if call.data["request"].get("argv") == ["true"]]
    assert len(made) == 2
    assert len({call.pid for call in made}) == 2
    for worker in {call.segment for call in made}:
        assert [end.segment for end in take.of("segment.end")].count(worker) == 1
    assert take.damages == []


POOL = """
import subprocess
from concurrent.futures import ProcessPoolExecutor

def work(n):
    return subprocess.run(["true"]).returncode + n

if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(sum(pool.map(work, range(4))))
"""


def test_workers_of_a_process_pool_join(record):
    take = record(sys.executable, record.script("agent.py", POOL))
    assert take.ended.stdout == "6\n", take.ended.stderr
    assert len([call for call in take.calls() if call.data["request"].get("argv") == ["true"]]) == 4
    assert take.damages == []


def test_a_program_that_becomes_another_python_goes_on_being_recorded(record):
    become = f"import os, sys\nos.execv(sys.executable, [sys.executable, '-c', {CHILD!r}])"
    take = record(sys.executable, "-c", become)
    assert take.ended.returncode == 0
    before, after = take.processes
    assert before.pid == after.pid
    assert before.segment != after.segment
    assert [call.data["request"]["argv"] for call in take.calls()][-1] == ["true"]
    assert take.of("hole") == []


@pytest.mark.parametrize(
    "start",
    [
        "os.system(shlex.join(argv))",
        "os.waitpid(os.posix_spawn(sys.executable, argv, os.environ), 0)",
        "os.waitpid(os.posix_spawn(sys.executable, argv, {}), 0)",
        "os.spawnv(os.P_WAIT, sys.executable, argv)",
        "os.spawnve(os.P_WAIT, sys.executable, argv, {})",
        "os.popen(shlex.join(argv)).read()",
        "asyncio.run(start())",
    ],
)
def test_however_a_child_is_started_it_joins(record, start):
    program = f"""
import asyncio, os, shlex, sys
argv = [sys.executable, '-c', {CHILD!r}]
async def start():
    process = await asyncio.create_subprocess_exec(*argv, env={{}})
    await process.wait()
{start}
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.returncode == 0, take.ended.stderr
    assert len(take.processes) == 2
    assert ["true"] in [call.data["request"].get("argv") for call in take.calls()]


def test_an_unhooked_child_of_a_shell_inherits_and_hangs_under_its_program(record):
    line = f"cd / && {sys.executable} -c pass; true"
    program = f"import subprocess\nsubprocess.run({line!r}, shell=True)"
    take = record(sys.executable, "-c", program)
    _, child = take.processes
    (shell,) = take.calls()
    assert child.parent == shell.ref


def test_a_program_that_overwrites_pythonpath_loses_neither_it_nor_its_children(record):
    look = "import sys; print('/mine' in sys.path)"
    program = f"""
import os, subprocess, sys
os.environ['PYTHONPATH'] = '/mine'
subprocess.run([sys.executable, '-c', {look!r}])
os.system(sys.executable + ' -c "import sys; print(\\'/mine\\' in sys.path)"')
subprocess.run([sys.executable, '-c', {look!r}])
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == "True\nTrue\nTrue\n", take.ended.stderr
    assert len(take.processes) == 4


def test_a_child_that_outlives_the_run_is_left_alone_and_named(record):
    program = """
import subprocess, sys
late = "import sys; sys.stdin.read(); import subprocess; subprocess.run([sys.executable, '-c', 'pass'])"
subprocess.Popen([sys.executable, "-c", late])
"""
    running = record.start(
        sys.executable, "-c", program, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with running:
        assert running.wait() == 0
        ended = record.take().manifest
        assert ended.status == "ok"
        running.stdin.close()
        # End of file: the last one who holds our pipes, the child and its own child, has left.
        assert running.stdout.read() == b""
        told = running.stderr.read().decode()
    left, recorded = told.splitlines()
    assert left.startswith("playhead: the command left 1 process (python")
    assert recorded.startswith("● recorded")
    assert record.take().damages == []
