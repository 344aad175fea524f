"""The ways to start a process that do not go through `subprocess`."""

import os
import pty
import select
import signal
import subprocess
import sys

import pexpect
import pytest

TOUCH = "touch trace; "


def in_folder(scene):
    """Some of these calls know no `cwd`."""

    def play(work):
        before = os.getcwd()
        os.chdir(work)
        try:
            return scene()
        finally:
            os.chdir(before)

    return play


@pytest.mark.parametrize("command", ["true", "exit 3", "kill -TERM $$", "exit 255"])
def test_system_gives_the_same_status(stage, command):
    recorded = stage.all(in_folder(lambda: os.system(TOUCH + command)))
    assert recorded.call["request"]["shell"] == TOUCH + command
    assert recorded.call["via"] == "os.system"


def test_system_refuses_what_it_refuses(stage):
    def scene():
        with pytest.raises(ValueError, match="null"):
            os.system("a\0b")

    stage.all(in_folder(scene))


def reaped(pid):
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("name", ["posix_spawn", "posix_spawnp"])
@pytest.mark.parametrize("script", ["exit 0", "exit 9", "kill -KILL $$"])
def test_posix_spawn_is_waited_for_by_pid(stage, name, script):
    program = "/bin/sh" if name == "posix_spawn" else "sh"

    def scene():
        return reaped(getattr(os, name)(program, ["sh", "-c", TOUCH + script], os.environ))

    recorded = stage.all(in_folder(scene))
    assert recorded.call["request"]["argv"] == ["sh", "-c", TOUCH + script]


def test_posix_spawn_with_pipes_of_the_programs_own(stage):
    def scene():
        out, err, into = os.pipe(), os.pipe(), os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, into[0], 0),
            (os.POSIX_SPAWN_DUP2, out[1], 1),
            (os.POSIX_SPAWN_DUP2, err[1], 2),
        ]
        script = TOUCH + "cat; echo err >&2"
        pid = os.posix_spawn(
            "/bin/sh", ["sh", "-c", script], {"PATH": os.defpath}, file_actions=actions
        )
        for fd in (into[0], out[1], err[1]):
            os.close(fd)
        os.write(into[1], b"in\n")
        os.close(into[1])
        seen = os.read(out[0], 100), os.read(out[0], 100), os.read(err[0], 100)
        os.close(out[0])
        os.close(err[0])
        return seen, reaped(pid)

    recorded = stage.all(in_folder(scene))
    assert (recorded.stream("stdin"), recorded.stream("stdout")) == (b"in\n", b"in\n")
    assert recorded.stream("stderr") == b"err\n"


def test_posix_spawn_into_a_file(stage):
    def scene():
        with open("log", "wb") as log:
            actions = [(os.POSIX_SPAWN_DUP2, log.fileno(), 1)]
            code = reaped(
                os.posix_spawn(
                    "/bin/sh", ["sh", "-c", TOUCH + "echo x"], os.environ, file_actions=actions
                )
            )
        with open("log", "rb") as log:
            return code, log.read()

    stage.all(in_folder(scene))


def test_posix_spawn_of_nothing_fails_in_the_same_words(stage):
    def scene():
        with pytest.raises(FileNotFoundError) as raised:
            os.posix_spawn("/no/such", ["such"], os.environ)
        return str(raised.value)

    stage.all(in_folder(scene))


def test_a_spawned_process_can_be_killed(stage):
    def scene():
        pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ, setpgroup=0)
        os.killpg(pid, signal.SIGTERM)
        return reaped(pid)

    assert stage.all(in_folder(scene)).marks() == [("signal", b"SIGTERM")]


WAITS = {
    "wait": lambda pid: os.wait()[1],
    "wait3": lambda pid: os.wait3(0)[1],
    "wait4": lambda pid: os.wait4(pid, 0)[1],
    "waitid": lambda pid: os.waitid(os.P_PID, pid, os.WEXITED).si_status,
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_an_exit_is_noticed_however_it_is_waited_for(stage, wait):
    def scene():
        return wait(os.posix_spawn("/bin/sh", ["sh", "-c", TOUCH + "exit 5"], os.environ))

    assert stage.all(in_folder(scene)).outcome["exit_code"] == 5


SPAWNS = {
    "spawnl": lambda: os.spawnl(os.P_WAIT, "/bin/sh", "sh", "-c", TOUCH + "exit 3"),
    "spawnle": lambda: os.spawnle(
        os.P_WAIT, "/bin/sh", "sh", "-c", ": > trace; exit $A", {"A": "4"}
    ),
    "spawnlp": lambda: os.spawnlp(os.P_WAIT, "sh", "sh", "-c", TOUCH + "kill -9 $$"),
    "spawnlpe": lambda: os.spawnlpe(os.P_WAIT, "sh", "sh", "-c", ": > trace", os.environ),
    "spawnv": lambda: os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", TOUCH + "exit 5"]),
    "spawnvp": lambda: reaped(os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", TOUCH + "exit 6"])),
    "spawnvpe": lambda: reaped(os.spawnvpe(os.P_NOWAIT, "sh", ["sh", "-c", TOUCH], os.environ)),
    "nothing": lambda: os.spawnlp(os.P_WAIT, "no-such-program", "x"),
}


@pytest.mark.parametrize("scene", SPAWNS.values(), ids=SPAWNS)
def test_spawn_in_every_form_is_one_call(stage, scene):
    assert stage.all(in_folder(scene)).call["via"] == "os.spawn"


EXECS = {
    "execv": "os.execv('/bin/sh', ['sh', '-c', SCRIPT])",
    "execve": "os.execve('/bin/sh', ['sh', '-c', SCRIPT], {'A': 'b', 'PATH': os.defpath})",
    "execvp": "os.execvp('sh', ['sh', '-c', SCRIPT])",
    "execvpe": "os.execvpe('sh', ['sh', '-c', SCRIPT], {'A': 'b', 'PATH': os.defpath})",
    "execl": "os.execl('/bin/sh', 'sh', '-c', SCRIPT)",
    "execle": "os.execle('/bin/sh', 'sh', '-c', SCRIPT, {'A': 'b', 'PATH': os.defpath})",
    "execlp": "os.execlp('sh', 'sh', '-c', SCRIPT)",
    "execlpe": "os.execlpe('sh', 'sh', '-c', SCRIPT, {'A': 'b', 'PATH': os.defpath})",
}


@pytest.mark.parametrize("line", EXECS.values(), ids=EXECS)
def test_a_program_that_becomes_another_says_so_first(tmp_path, recorded, line):
    program = (
        "import os, sys, playhead\n"
        "SCRIPT = 'echo $A; exit 7'\n"
        "run = playhead.record(intercept=True, store=sys.argv[1], redact=False).__enter__()\n"
        f"print(run.path, flush=True)\n{line}\n"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**os.environ, "A": "b"}, check=False
    )
    path, said = done.stdout.splitlines()
    assert (said, done.returncode) == ("b", 7)
    tape = recorded(path)
    assert tape.call["request"]["argv"] == ["sh", "-c", "echo $A; exit 7"]
    assert tape.outcome["how"] == "left"
    assert tape.outcome["replaced"] is True


def test_an_exec_that_fails_is_on_the_tape_as_such(stage):
    def scene(work):
        with pytest.raises(FileNotFoundError) as raised:
            os.execvp("no-such-program", ["x"])
        return str(raised.value)

    stage.all(scene)
    assert stage.recorded.outcome["how"] == "raised"


def read_all(fd):
    """All that comes from a terminal until its last user has gone."""
    seen = b""
    while True:
        try:
            piece = os.read(fd, 1000)
        except OSError:
            return seen
        if not piece:
            return seen
        seen += piece


def test_a_child_on_a_terminal_of_its_own(stage):
    def scene():
        pid, master = os.forkpty()
        if pid == 0:
            os.execvp(
                "sh", ["sh", "-c", TOUCH + "tty > /dev/null && echo tty; read x; echo got $x"]
            )
        seen = b""
        while b"tty\r\n" not in seen:
            seen += os.read(master, 1000)
        os.write(master, b"this\n")
        seen += read_all(master)
        os.close(master)
        return seen, reaped(pid)

    assert stage.bare(in_folder(scene)) == (b"tty\r\nthis\r\ngot this\r\n", 0)
    assert stage.record(in_folder(scene)) == (b"tty\r\nthis\r\ngot this\r\n", 0)
    assert stage.replayed_without_children(in_folder(scene)) == (b"tty\r\nthis\r\ngot this\r\n", 0)
    assert not stage.trace.exists()
    first, inner = stage.recorded.calls
    assert first["via"] == "os.forkpty"
    assert inner["request"]["argv"][0] == "sh"


def test_pty_spawn_copies_what_comes(stage):
    def scene():
        seen = []

        def read(fd):
            data = os.read(fd, 1024)
            seen.append(data)
            return data

        status = pty.spawn(["sh", "-c", TOUCH + "echo on a tty; exit 4"], read, lambda fd: b"")
        return b"".join(seen), os.waitstatus_to_exitcode(status)

    recorded = stage.all(in_folder(scene))
    assert recorded.call["request"]["argv"][0] == "sh"
    assert recorded.stream("stdout") == b"on a tty\r\n"


def test_popen_on_a_terminal(stage):
    def scene():
        master, slave = os.openpty()
        script = TOUCH + "test -t 0 -a -t 1 && echo a tty; read x; echo $x"
        process = subprocess.Popen(["sh", "-c", script], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        while b"tty\r\n" not in seen:
            seen += os.read(master, 1000)
        os.write(master, b"word\n")
        seen += read_all(master)
        os.close(master)
        return seen, process.wait()

    recorded = stage.all(in_folder(scene))
    assert recorded.stream("stdout") == b"a tty\r\nword\r\nword\r\n"
    assert recorded.stream("stdin") == b"word\n"


def test_pexpect_holds_its_conversation(stage):
    def scene():
        child = pexpect.spawn("bc", ["-q"], encoding="utf-8", timeout=20)
        child.setecho(False)
        answers = []
        for line, answer in (("6*7", "42"), ("2^8", "256")):
            child.sendline(line)
            child.expect_exact(answer)
            answers.append(child.after)
        child.sendline("quit")
        child.expect(pexpect.EOF)
        child.close()
        return answers, child.exitstatus

    assert stage.bare(in_folder(scene)) == stage.record(in_folder(scene))
    assert stage.replayed_without_children(in_folder(scene)) == (["42", "256"], 0)


def test_a_child_that_inherits_our_terminal_has_it(stage):
    """The recorded program has a terminal; so have its children."""
    program = (
        "import subprocess, sys, playhead\n"
        "with playhead.record(intercept=True, store=sys.argv[1], redact=False):\n"
        "    subprocess.run(['sh', '-c', 'test -t 1 && test -t 2 && echo a terminal'])\n"
    )
    master, slave = os.openpty()
    argv = [sys.executable, "-c", program, str(stage.work)]
    with subprocess.Popen(argv, stdout=slave, stderr=slave) as process:
        os.close(slave)
        ready, _, _ = select.select([master], [], [], 60)
        assert ready
        assert os.read(master, 1000) == b"a terminal\r\n"
        assert process.wait() == 0
    os.close(master)


def test_builtins_that_were_put_into_a_class_still_do_not_bind(stage):
    def scene(work):
        class Pipe:
            read, write, close = os.read, os.write, os.close

        ends = os.pipe()
        pipe = Pipe()
        pipe.write(ends[1], b"x")
        seen = pipe.read(ends[0], 10)
        for fd in ends:
            pipe.close(fd)
        return seen

    assert stage.record(scene) == b"x"
