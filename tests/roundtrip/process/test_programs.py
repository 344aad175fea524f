"""Whole programs: run bare, recorded by the launcher, and replayed from the tape alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = {
    "every way of subprocess": """
        import os, subprocess, sys
        print(subprocess.run(["sh", "-c", "touch trace; echo one; date +%N"], capture_output=True))
        print(subprocess.run(["tr", "a-z", "A-Z"], input="two", capture_output=True, text=True))
        print(subprocess.check_output("echo three; exit 0", shell=True))
        print(subprocess.getstatusoutput("echo four; exit 4"))
        print(os.popen("echo five").read(), os.system("exit 6"))
        with subprocess.Popen(["bc", "-q"], stdin=-1, stdout=-1, text=True) as calculator:
            for sum_ in ("6*7", "2^64"):
                calculator.stdin.write(sum_ + chr(10))
                calculator.stdin.flush()
                print(calculator.stdout.readline().strip())
        try:
            subprocess.run(["no-such-program"])
        except FileNotFoundError as error:
            print(error)
        with open("log", "w+") as log:
            subprocess.run(["sh", "-c", "echo into a file"], stdout=log)
            log.seek(0)
            print(log.read())
        """,
    "event loops": """
        import anyio, asyncio, trio, uvloop
        async def scene():
            process = await asyncio.create_subprocess_shell("touch trace; cat; date +%N", stdin=-1, stdout=-1)
            print(await process.communicate(b"hello "))
        asyncio.run(scene())
        uvloop.run(scene())
        async def portable():
            done = await anyio.run_process(["sh", "-c", "touch trace; cat; date +%N"], input=b"any ")
            print(done.stdout)
        anyio.run(portable)
        trio.run(portable)
        """,
    "a process that takes longer to start than its timeout": """
        import subprocess, time
        def slow_start():
            time.sleep(0.4)
        words = ["sh", "-c", "touch trace; exit 3"]
        print(subprocess.run(words, timeout=0.3, preexec_fn=slow_start).returncode)
        """,
    "time": """
        import asyncio, subprocess, time
        process = subprocess.Popen(["sh", "-c", "touch trace; sleep 0.7; echo done"], stdout=-1)
        looks = 0
        while process.poll() is None:
            looks += 1
            time.sleep(0.2)
        print(looks, process.communicate())
        slow = subprocess.Popen(["sh", "-c", "sleep 0.6; echo late"], stdout=-1)
        try:
            slow.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            print("too late")
        print(slow.communicate())
        async def one(seconds):
            process = await asyncio.create_subprocess_exec("sleep", seconds, stdout=-1)
            await process.communicate()
            return seconds
        async def race():
            print([await done for done in asyncio.as_completed([one("0.5"), one("0.1"), one("0.3")])])
            try:
                await asyncio.wait_for(one("1.5"), 0.2)
            except asyncio.TimeoutError:
                print("too late again")
        asyncio.run(race())
        """,
    "children that are Python": """
        import subprocess, sys
        child = "import subprocess; open('trace', 'w'); print(subprocess.getoutput('date +%N'))"
        print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
        print(subprocess.run([sys.executable, "-I", "-c", child], env={}, stdout=-1, text=True).stdout)
        """,
    "a terminal": """
        import os, pty
        def read(master):
            seen = b""
            while True:
                try:
                    piece = os.read(master, 1000)
                except OSError:
                    return seen
                if not piece:
                    return seen
                seen += piece
        pid, master = pty.fork()
        if not pid:
            os.execvp("sh", ["sh", "-c", "touch trace; tty >/dev/null && echo yes; read x; echo $x; date +%N"])
        # The terminal shows what is typed at once, so the program types after the first line of the shell.
        first = b""
        while bytes([10]) not in first:
            first += os.read(master, 1000)
        os.write(master, b"typed" + bytes([10]))
        print(first, read(master), os.waitpid(pid, 0)[1])
        """,
    "inherited output": """
        import os, subprocess, sys
        print("first", flush=True)
        subprocess.run(["sh", "-c", "touch trace; date +%N; echo err >&2"])
        os.system("echo system; date +%N")
        print("between", flush=True)
        subprocess.check_call([sys.executable, "-c", "print('a Python')"])
        print(subprocess.run(["echo", "captured"], stdout=-1).stdout, flush=True)
        os.spawnlp(os.P_WAIT, "echo", "echo", "spawned")
        print("last")
        """,
    "signals": """
        import os, signal, subprocess
        argv = ["sh", "-c", "touch trace; echo up; exec sleep 60"]
        sleeper = subprocess.Popen(argv, stdout=-1, start_new_session=True)
        print(sleeper.stdout.readline())
        os.killpg(sleeper.pid, signal.SIGTERM)
        print(sleeper.wait(), sleeper.stdout.read())
        """,
}  # fmt: skip


@pytest.fixture
def play(tmp_path):
    """Run something in a folder of its own; its output and how it ended."""
    store = {**os.environ, "PLAYHEAD_HOME": str(tmp_path / "store"), "PLAYHEAD_RECORD": "1"}

    def run(*argv):
        return subprocess.run(
            argv, cwd=tmp_path, env=store, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_prints_from_the_tape_what_it_printed_then(tmp_path, play, source):
    program = tmp_path / "program.py"
    program.write_text("\n".join(line.removeprefix(" " * 8) for line in source.splitlines()))
    trace = tmp_path / "trace"
    playhead = str(Path(sys.executable).with_name("playhead"))
    bare = play(sys.executable, str(program))
    assert bare.returncode == 0, bare.stderr

    recorded = play(playhead, "record", "--", sys.executable, str(program))
    assert recorded.returncode == 0, recorded.stderr
    assert shape(recorded.stdout) == shape(bare.stdout)
    assert trace.exists()

    trace.unlink()
    replayed = play(playhead, "replay", "last")
    assert replayed.stdout == recorded.stdout, replayed.stderr
    assert "identical" in replayed.stderr
    assert replayed.returncode == 0, replayed.stderr
    assert not trace.exists()


def shape(output: str) -> str:
    """`date +%N` is there to prove that a replay does not ask again; it differs each time."""
    return "".join("9" if letter.isdigit() else letter for letter in output)
