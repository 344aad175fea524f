"""stdin is on the tape, and a replay gives it back: it has no stdin of its own and waits for no person."""

import os
import select
import subprocess
import sys

import pytest

PLAYHEAD = (sys.executable, "-m", "playhead")


@pytest.fixture
def replay(record):
    """Replay the last run with an empty stdin; its exit code, output and report."""

    def again(*options):
        return subprocess.run(
            [*PLAYHEAD, "replay", *options, "last"],
            env=record.env,
            cwd=record.folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    return again


READS = {
    "input": "print('hello', input('name? '))\nprint(input())",
    "lines": "import sys\nprint([line for line in sys.stdin])",
    "readline": "import sys\nprint(sys.stdin.readline(), sys.stdin.read(3), sys.stdin.readlines())",
    "buffer": "import sys\nprint(sys.stdin.buffer.read())",
    "fileinput": "import fileinput\nprint(list(fileinput.input()))",
    "descriptor": "import os\nprint(os.read(0, 4), os.read(0, 100))",
    "child": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'print(input())'])\n"
        "print('end')"
    ),
    "thread": (
        "import queue, sys, threading\n"
        "lines = queue.Queue()\n"
        "def read():\n"
        "    for line in sys.stdin: lines.put(line)\n"
        "threading.Thread(target=read, daemon=True).start()\n"
        "print(lines.get(), lines.get())"
    ),
    "event loop": (
        "import asyncio, sys\n"
        "async def main():\n"
        "    reader = asyncio.StreamReader()\n"
        "    loop = asyncio.get_running_loop()\n"
        "    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)\n"
        "    print(await reader.readline(), await reader.read())\n"
        "asyncio.run(main())"
    ),
}


@pytest.mark.parametrize("way", READS)
def test_piped_input_comes_back_from_the_tape(record, replay, way):
    taken = record(sys.executable, "-c", READS[way], input="Ada\nLovelace\n")
    assert taken.ended.returncode == 0, taken.ended.stderr
    again = replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.ended.stdout


def test_a_file_as_stdin_need_not_exist_any_more(record, replay):
    (record.folder / "names").write_text("Ada\nGrace\n")
    with (record.folder / "names").open() as file:
        taken = record(sys.executable, "-c", READS["lines"], stdin=file)
    (record.folder / "names").unlink()
    again = replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.ended.stdout == "['Ada\\n', 'Grace\\n']\n"


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_a_shell_wrapper_gets_its_input_back(record, replay, kind):
    script = 'read name; echo "hello $name"; python3 -c "print(input())"; read last; echo "[$last]"'
    names = record.folder.parent / "names"
    names.write_text("Ada\nGrace\nEnd\n")
    with names.open() as file:
        given = {"stdin": file} if kind == "file" else {"input": names.read_text()}
        taken = record("sh", "-c", script, **given)
    assert "hello Ada" in taken.ended.stdout
    again = replay()
    assert again.returncode == 0, again.stderr
    assert again.stdout == taken.ended.stdout


def test_a_python_that_reads_no_input_leaves_it_for_the_next_program(record):
    shell = "printf 'a\\nb\\n' | (\"$@\"; cat)"
    ended = record.bare("sh", "-c", shell, "sh", *record.argv(sys.executable, "-c", "print('ran')"))
    assert ended.stdout == "ran\na\nb\n"


def test_a_program_that_reads_more_than_the_tape_has_is_told_that_input_is_missing(record, replay):
    script = record.script("reads.py", READS["input"])
    record(sys.executable, script, input="Ada\nLovelace\n")
    record.script("reads.py", READS["input"] + "\nprint(input())\nprint(input())")
    again = replay("--in-place")
    assert again.returncode == 3
    first = again.stderr.partition("1. ")[2].partition("\n")[0]
    assert first == "The program reads more from stdin than the tape has."


def test_a_thread_that_waited_for_input_at_the_end_waits_again(record, replay):
    program = (
        "import sys, threading, time\n"
        "threading.Thread(target=sys.stdin.readline, daemon=True).start()\n"
        "time.sleep(0.2)\n"
        "print('end', flush=True)\n"
        "import os; os._exit(0)\n"
    )
    reader, writer = os.pipe()
    taken = record(sys.executable, "-c", program, stdin=reader)
    os.close(writer)
    assert taken.ended.stdout == "end\n"
    again = replay()
    assert again.returncode == 0, again.stderr


def _on_terminal(record, argv, keys):
    """Run on a terminal of its own, type `keys` when it prompts; all that is shown, and the exit code."""
    pid, fd = os.forkpty()
    if pid == 0:
        os.chdir(record.folder)
        os.execvpe(argv[0], argv, {**record.env, "TERM": "dumb"})
    shown = ""
    while True:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, f"nothing more is shown: {shown!r}"
        try:
            shown += os.read(fd, 4096).decode()
        except OSError:
            break
        if keys and shown.rstrip().endswith(keys[0][0]):
            os.write(fd, keys.pop(0)[1].encode())
    os.close(fd)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


ASKS = (
    "import getpass, sys\n"
    "name = input('name? ')\n"
    "secret = getpass.getpass('secret? ')\n"
    "print('hello', name, len(secret) > 3, sys.stdin.isatty())\n"
    "print('more?', flush=True)\n"
    "print(sys.stdin.readline())\n"
)


def test_typed_input_comes_back_and_the_password_is_not_on_the_tape(record, replay):
    argv = record.argv(sys.executable, "-c", ASKS)
    keys = [("name?", "Ada\n"), ("secret?", "correct horse battery\n"), ("more?", "tea\n")]
    shown, code = _on_terminal(record, argv, keys)
    assert code == 0, shown
    assert "hello Ada True True" in shown
    again = replay()
    assert again.returncode == 0, again.stderr
    assert "hello Ada True True\nmore?\ntea\n" in again.stdout
    written = b"".join(one.read_bytes() for one in record.home.rglob("*") if one.is_file())
    assert b"correct horse" not in written
    assert b"Ada" in written
