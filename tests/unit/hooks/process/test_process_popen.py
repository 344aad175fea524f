import contextlib
import io
import os
import select
import signal
import subprocess
import sys
import threading
from subprocess import DEVNULL, PIPE, STDOUT

import pytest

from playhead.errors import Divergence

TOUCH = "touch trace; "


def in_folder(*args, **kwargs):
    """A scene of one `subprocess.run` in the stage's folder."""

    def scene(work):
        done = subprocess.run(*args, cwd=work, check=False, **kwargs)
        return done.returncode, done.stdout, done.stderr, done.args

    return scene


CAPTURED = {
    "both streams": in_folder(["sh", "-c", TOUCH + "echo out; echo err >&2"], capture_output=True),
    "stdout alone": in_folder(["sh", "-c", TOUCH + "echo out"], stdout=PIPE),
    "stderr alone": in_folder(["sh", "-c", TOUCH + "echo err >&2"], stderr=PIPE),
    "stderr in stdout": in_folder(
        ["sh", "-c", TOUCH + "echo a; echo b >&2; echo c"], stdout=PIPE, stderr=STDOUT
    ),
    "nothing said": in_folder(["touch", "trace"], capture_output=True),
    "exit code": in_folder(["sh", "-c", TOUCH + "echo no; exit 42"], capture_output=True),
    "a signal": in_folder(["sh", "-c", TOUCH + "kill -TERM $$"], capture_output=True),
    "a crash": in_folder(["sh", "-c", TOUCH + "kill -SEGV $$"], capture_output=True),
    "text": in_folder(["sh", "-c", TOUCH + "echo grün"], capture_output=True, text=True),
    "universal newlines": in_folder(
        ["sh", "-c", TOUCH + r"printf 'a\r\nb\rc\n'"], stdout=PIPE, universal_newlines=True
    ),
    "an encoding": in_folder(
        ["sh", "-c", TOUCH + r"printf 'gr\374n'"], stdout=PIPE, encoding="latin-1"
    ),
    "bytes that are no text": in_folder(
        ["sh", "-c", TOUCH + r"printf '\000\377\200'"], stdout=PIPE
    ),
    "input": in_folder(["sh", "-c", TOUCH + "tr a-z A-Z"], input=b"shout", stdout=PIPE),
    "text input": in_folder(
        ["sh", "-c", TOUCH + "tr a-z A-Z"], input="shout\n", stdout=PIPE, text=True
    ),
    "input that nobody reads": in_folder(["sh", "-c", TOUCH], input=b"x" * 300_000, stdout=PIPE),
    "a shell": in_folder(TOUCH + "echo $0 | tr a-z A-Z", shell=True, stdout=PIPE),
    "shell and arguments": in_folder([TOUCH + 'echo "$0$1"', "a", "b"], shell=True, stdout=PIPE),
    "another shell": in_folder(
        TOUCH + "echo ${BASH_VERSION:+yes}", shell=True, executable="/bin/bash", stdout=PIPE
    ),
    "nested shells": in_folder(
        ["sh", "-c", TOUCH + "sh -c 'sh -c \"echo deep\"; exit 3'"], stdout=PIPE
    ),
    "its own name": in_folder(
        ["other", "-c", TOUCH + "echo $0"], executable="/bin/sh", stdout=PIPE
    ),
    "an environment": in_folder(
        ["/bin/sh", "-c", ": > trace; echo $A$HOME"], env={"A": "b"}, stdout=PIPE
    ),
    "devnull": in_folder(["sh", "-c", TOUCH + "echo gone"], stdout=DEVNULL, stderr=DEVNULL),
    "stdin from devnull": in_folder(["sh", "-c", TOUCH + "cat"], stdin=DEVNULL, stdout=PIPE),
    "a new session": in_folder(
        ["sh", "-c", TOUCH + "echo new"], start_new_session=True, stdout=PIPE
    ),
    "a preexec_fn": in_folder(
        ["sh", "-c", TOUCH + "umask"], preexec_fn=lambda: os.umask(0o77), stdout=PIPE
    ),
    "inherited descriptors": in_folder(["sh", "-c", TOUCH], close_fds=False),
    "a path": in_folder([b"sh", "-c", TOUCH + "echo bytes"], stdout=PIPE),
}


@pytest.mark.parametrize("scene", CAPTURED.values(), ids=CAPTURED)
@pytest.mark.filterwarnings("ignore:.*preexec_fn:DeprecationWarning")
def test_a_program_sees_the_same_bare_recorded_and_replayed(stage, scene):
    stage.all(scene)


def test_the_tape_says_what_was_asked_and_what_came_of_it(stage):
    def scene(work):
        env = {**os.environ, "WHO": "me"}
        line = ["git", "status", "--short"]
        return subprocess.run(line, cwd=work, env=env, capture_output=True, check=False).returncode

    stage.record(scene)
    call, outcome = stage.recorded.call, stage.recorded.outcome
    assert call["name"] == "git status"
    assert call["command"] == "git status --short"
    assert call["request"] == {
        "argv": ["git", "status", "--short"],
        "cwd": str(stage.work),
        "env": {"WHO": "me"},
        "stdin": "inherited",
    }
    assert (call["stdout"], call["stderr"]) == ("pipe", "pipe")
    assert outcome["how"] == "returned"
    assert outcome["exit_code"] == outcome["value"]
    assert outcome["took_ns"] >= outcome["exited_ns"] > 0


def test_a_death_by_signal_is_named(stage):
    stage.record(in_folder(["sh", "-c", "kill -9 $$"]))
    assert stage.recorded.outcome["signal"] == "SIGKILL"
    assert stage.recorded.outcome["value"] == -9
    assert "exit_code" not in stage.recorded.outcome


def test_input_that_is_known_beforehand_is_part_of_the_request(stage):
    stage.all(in_folder(["sh", "-c", TOUCH + "cat"], input=b"prompt", stdout=PIPE))
    assert stage.recorded.call["request"]["stdin"] == {"text": "prompt"}
    assert stage.recorded.stream("stdin") == b""


MISSING = {
    "an executable": (["no-such-program"], {}),
    "a path": (["./nothing"], {}),
    "a folder": (["true"], {"cwd": "/no/such/folder"}),
    "permission": (["/etc/passwd"], {}),
}


@pytest.mark.parametrize(("argv", "options"), MISSING.values(), ids=MISSING)
def test_what_cannot_be_started_fails_in_the_same_words(stage, argv, options):
    def scene(work):
        with pytest.raises(OSError) as raised:
            subprocess.run(argv, check=False, **options)
        error = raised.value
        return type(error), str(error), error.errno, error.filename

    stage.all(scene)
    assert stage.recorded.outcome["how"] == "raised"


def test_a_preexec_fn_that_fails_fails_in_the_same_way(stage):
    def scene(work):
        with pytest.raises(subprocess.SubprocessError) as raised:
            subprocess.run(["true"], preexec_fn=lambda: 1 / 0, check=False)
        return str(raised.value)

    stage.all(scene)


def test_check_output_and_its_kin_raise_what_they_raise(stage):
    def scene(work):
        seen = [
            subprocess.check_output(["sh", "-c", TOUCH + "echo one"], cwd=work),
            subprocess.getoutput("echo two"),
            subprocess.getstatusoutput("echo three; exit 3"),
            subprocess.call(["sh", "-c", "exit 4"]),
        ]
        with os.popen("echo five") as pipe:
            seen.append(pipe.read())
        with pytest.raises(subprocess.CalledProcessError) as raised:
            subprocess.check_output("echo six; echo no >&2; exit 6", shell=True, stderr=PIPE)
        return *seen, raised.value.returncode, raised.value.output, raised.value.stderr

    assert len(stage.all(scene).calls) == 6


def test_a_conversation_keeps_its_turns(stage):
    """The answer to the second line must not be there before the second line is."""

    def scene(work):
        heard = []
        with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as cat:
            for line in (b"one\n", b"two\n", b"three\n"):
                cat.stdin.write(line)
                cat.stdin.flush()
                heard.append(os.read(cat.stdout.fileno(), 100))
            heard.append(cat.poll())
            cat.stdin.close()
            heard.append(cat.stdout.read())
        return heard, cat.returncode

    stage.all(scene)
    assert stage.recorded.marks() == [
        *[("stdin", b"one\n"), ("stdout", b"one\n"), ("stdin", b"two\n"), ("stdout", b"two\n")],
        *[("stdin", b"three\n"), ("stdout", b"three\n"), ("closed", b"stdin")],
    ]


def test_a_calculator_in_text_mode_line_by_line(stage):
    def scene(work):
        calculator = subprocess.Popen(
            ["bc", "-q"], stdin=PIPE, stdout=PIPE, stderr=STDOUT, text=True, bufsize=1
        )
        results = []
        for sum_ in ("1+1", "2*21", "2^10"):
            calculator.stdin.write(f"{sum_}\n")
            results.append(calculator.stdout.readline())
        rest, nothing = calculator.communicate("quit\n")
        return results, rest, nothing, calculator.returncode

    stage.all(scene)


def test_a_hundred_megabytes_pass_in_constant_memory(tmp_path):
    program = r"""
import pathlib, re, subprocess, sys
import playhead
with playhead.record(intercept=True, store=sys.argv[1], redact=False):
    yes = subprocess.Popen("yes 'a line of text' | head -c 100M", shell=True, stdout=-1)
    size = 0
    while piece := yes.stdout.read(1 << 20):
        size += len(piece)
    yes.stdout.close()
    yes.wait()
print(size, re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""
    argv = [sys.executable, "-c", program, str(tmp_path)]
    size, kilobytes = subprocess.check_output(argv, text=True).split()
    assert int(size) == 100 << 20
    assert int(kilobytes) < 80_000


def test_large_outputs_on_both_streams_come_whole(stage):
    script = (
        TOUCH + "head -c 700000 /dev/zero | tr '\\0' o; head -c 600000 /dev/zero | tr '\\0' e >&2"
    )
    recorded = stage.all(in_folder(["sh", "-c", script], capture_output=True))
    assert recorded.stream("stdout") == b"o" * 700_000
    assert recorded.stream("stderr") == b"e" * 600_000


def test_large_input_and_output_at_once_do_not_block(stage):
    def scene(work):
        cat = subprocess.Popen(["sh", "-c", TOUCH + "cat"], cwd=work, stdin=PIPE, stdout=PIPE)
        return cat.communicate(b"0123456789" * 50_000), cat.returncode

    recorded = stage.all(scene)
    assert recorded.stream("stdin") == recorded.stream("stdout") == b"0123456789" * 50_000


def test_a_timeout_fires_and_the_rest_can_still_be_read(stage):
    def scene(work):
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + "echo early; exec sleep 60"], cwd=work, stdout=PIPE
        )
        first = process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired) as raised:
            process.wait(timeout=0.05)
        process.kill()
        return first, str(raised.value), process.communicate(), process.returncode

    stage.all(scene)


def test_run_with_a_timeout_keeps_what_had_come(stage):
    def scene(work):
        with pytest.raises(subprocess.TimeoutExpired) as raised:
            # A busy machine takes tenths of a second until the shell prints.
            subprocess.run(
                ["sh", "-c", "echo early; exec sleep 60"], stdout=PIPE, timeout=1, check=False
            )
        return raised.value.output, raised.value.timeout

    stage.all(scene)
    assert ("signal", b"SIGKILL") in stage.recorded.marks()


def test_a_process_that_takes_its_leave_on_sigterm_does_so_again(stage):
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('bye') or 5))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )

    def scene(work):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=PIPE, text=True)
        first = process.stdout.readline()
        alive = process.poll()
        process.terminate()
        return first, alive, process.communicate(), process.returncode

    stage.all(scene)


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGUSR1]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_process_that_is_killed_dies_of_the_same_signal(stage, number):
    def scene(work):
        process = subprocess.Popen(["sleep", "60"])
        process.send_signal(number)
        return process.wait()

    stage.all(scene)
    assert stage.recorded.outcome["signal"] == number.name


def test_a_whole_group_can_be_killed(stage):
    def scene(work):
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + "echo up; sleep 60 & wait"],
            cwd=work,
            stdout=PIPE,
            start_new_session=True,
        )
        first = process.stdout.readline()
        assert os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGKILL)
        return first, process.communicate(), process.returncode

    stage.all(scene)


def test_polling_with_select_finds_real_descriptors(stage):
    def scene(work):
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + "echo x; exec sleep 60"], cwd=work, stdout=PIPE
        )
        ready, _, _ = select.select([process.stdout], [], [], 10)
        seen = os.read(process.stdout.fileno(), 10), len(ready), process.poll()
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        later = poll.poll(0)
        process.kill()
        process.wait()
        process.stdout.close()
        return seen, later

    stage.all(scene)


def test_output_that_is_there_when_the_process_has_ended_can_be_read_without_waiting(stage):
    def scene(work):
        process = subprocess.Popen(["sh", "-c", TOUCH + "echo x"], cwd=work, stdout=PIPE)
        process.wait()
        os.set_blocking(process.stdout.fileno(), False)
        with process:
            return process.stdout.read()

    stage.all(scene)
    assert stage.recorded.stream("stdout") == b"x\n"


def test_a_pipe_that_is_not_ready_gives_none_when_it_may_not_block(stage):
    def scene(work):
        with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as cat:
            os.set_blocking(cat.stdout.fileno(), False)
            return cat.stdout.read(), cat.stdout.read(10)

    stage.all(scene)


@pytest.mark.parametrize("bufsize", [-1, 0, 1, 2, 100_000])
@pytest.mark.filterwarnings("ignore:line buffering:RuntimeWarning")
def test_files_are_what_they_were_at_any_buffer_size(stage, bufsize):
    def scene(work):
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + "cat; echo end >&2"],
            cwd=work, stdin=PIPE, stdout=PIPE, stderr=PIPE, bufsize=bufsize,
        )  # fmt: skip
        kinds = [isinstance(file, io.RawIOBase) for file in (process.stdin, process.stdout)]
        facts = [process.stdout.readable(), process.stdin.writable(), process.stdout.mode]
        named = [file.name == file.fileno() for file in (process.stdin, process.stdout)]
        process.stdin.write(b"in\n")
        process.stdin.close()
        rest = process.stdout.readline(), process.stdout.read(), list(process.stderr)
        process.stdout.close()
        process.stderr.close()
        return kinds, facts, named, rest, process.wait(), process.stdout.closed

    stage.all(scene)


def test_text_files_keep_encoding_errors_and_buffering(stage):
    def scene(work):
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + r"cat; printf '\377\n'"],
            cwd=work, stdin=PIPE, stdout=PIPE, encoding="utf-8", errors="replace", bufsize=1,
        )  # fmt: skip
        facts = process.stdin.line_buffering, process.stdout.encoding, process.stdout.errors
        process.stdin.write("grün\n")
        first = process.stdout.readline()
        return facts, first, process.communicate()

    stage.all(scene)


def test_a_pipeline_of_two_processes_works_and_ends(stage):
    def scene(work):
        first = subprocess.Popen(["sh", "-c", TOUCH + "yes"], cwd=work, stdout=PIPE)
        second = subprocess.Popen(["head", "-n", "3"], stdin=first.stdout, stdout=PIPE)
        first.stdout.close()
        return second.communicate(), second.returncode, first.wait()

    stage.all(scene)


def test_output_into_a_file_of_the_program_is_there_again(stage):
    def scene(work):
        with (work / "log").open("w+b") as log:
            log.write(b"before\n")
            log.flush()
            code = subprocess.call(
                ["sh", "-c", TOUCH + "echo out; echo err >&2"], cwd=work, stdout=log, stderr=STDOUT
            )
            log.write(b"after\n")
            log.seek(0)
            return code, log.read()

    stage.all(scene)
    assert stage.recorded.stream("stdout") == b"out\nerr\n"
    assert stage.recorded.call["stdout"] == "file"


def test_a_file_that_was_closed_at_once_and_one_that_is_appended_to(stage):
    def scene(work):
        (work / "log").write_bytes(b"old\n")
        with (work / "log").open("ab") as log:
            first = subprocess.Popen(
                ["sh", "-c", TOUCH + "read x; echo new"], cwd=work, stdin=PIPE, stdout=log
            )
        first.communicate(b"go\n")
        with (work / "log").open("ab", buffering=0) as log:
            both = [subprocess.Popen(["echo", "same"], stdout=log) for _ in range(2)]
            codes = [one.wait() for one in both]
        return codes, (work / "log").read_bytes()

    stage.all(scene)
    assert stage.recorded.stream("stdout") == b"new\nsame\nsame\n"


def test_inherited_streams_are_left_alone_and_said_to_be(stage, capfd):
    stage.bare(in_folder(["sh", "-c", "echo out; echo err >&2"]))
    bare = capfd.readouterr()
    stage.record(in_folder(["sh", "-c", "echo out; echo err >&2"]))
    assert capfd.readouterr() == bare == ("out\n", "err\n")
    assert (stage.recorded.call["stdout"], stage.recorded.call["stderr"]) == (
        "inherited",
        "inherited",
    )
    assert stage.recorded.stream("stdout") == b""


def test_descriptors_passed_on_by_number_reach_the_child(stage):
    def scene(work):
        read, write = os.pipe()
        process = subprocess.Popen(["bash", "-c", f"echo through >&{write}"], pass_fds=[write])
        os.close(write)
        process.wait()
        with open(read, "rb") as file:
            return file.read()

    assert stage.bare(scene) == stage.record(scene) == b"through\n"


def test_a_pipe_of_the_programs_own_is_seen_too(stage):
    def scene(work):
        read, write = os.pipe()
        process = subprocess.Popen(
            ["sh", "-c", TOUCH + "echo one; echo two"], cwd=work, stdout=write
        )
        os.close(write)
        seen = b""
        while piece := os.read(read, 100):
            seen += piece
        os.close(read)
        return seen, process.wait()

    assert stage.all(scene).stream("stdout") == b"one\ntwo\n"


def test_a_grandchild_that_keeps_the_pipe_open_keeps_it_open(stage):
    def scene(work):
        os.mkfifo(work / "go")
        process = subprocess.Popen(
            ["sh", "-c", "(cat go; echo late) & echo early"], cwd=work, stdout=PIPE
        )
        early, code = process.stdout.readline(), process.wait()
        (work / "go").write_bytes(b"now\n")
        with process:
            return early, code, process.stdout.read()

    assert stage.bare(scene) == stage.record(scene) == (b"early\n", 0, b"now\nlate\n")
    assert stage.recorded.stream("stdout") == b"early\nnow\nlate\n"


def test_a_child_may_outlive_the_program(stage, recorded):
    program = (
        "import subprocess, sys, playhead\n"
        "with playhead.record(intercept=True, store=sys.argv[1], redact=False) as run:\n"
        "    child = subprocess.Popen(['sh', '-c', 'read x; echo $x > after'], stdout=-3)\n"
        "    child.returncode = 0\n"
        "print(run.path)\n"
    )
    read, write = os.pipe()
    stage._clean()
    argv = [sys.executable, "-c", program, "store"]
    parent = subprocess.run(argv, cwd=stage.work, stdin=read, stdout=PIPE, text=True, check=True)
    os.close(read)
    after = stage.work / "after"
    assert not after.exists()
    os.mkfifo(after)
    os.write(write, b"still here\n")
    os.close(write)
    assert after.read_text() == "still here\n"
    assert recorded(parent.stdout.strip()).outcome["how"] == "left"


def test_a_subclass_is_still_a_subclass_and_a_popen(stage):
    class Noisy(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            self.made = True
            super().__init__(*args, **kwargs)

    def scene(work):
        with Noisy(["sh", "-c", TOUCH + "echo x"], cwd=work, stdout=PIPE) as process:
            isa = isinstance(process, subprocess.Popen), type(process) is Noisy, process.made
            return isa, process.stdout.read(), process.args

    stage.all(scene)


def test_many_threads_do_not_mix_their_processes_up(stage):
    def scene(work):
        seen = {}

        def ask(number):
            script = f"read x; echo {number}-$x"
            done = subprocess.run(
                ["sh", "-c", script], input=b"%d\n" % number, stdout=PIPE, check=False
            )
            seen[number] = done.stdout

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return dict(sorted(seen.items()))

    stage.all(scene)


def test_arguments_that_popen_refuses_are_refused_by_popen(stage):
    def scene(work):
        told = []
        for args, kwargs in [
            ((), {}),
            ((["true"],), {"args": ["true"]}),
            ((["true"],), {"nope": 1}),
            ((7,), {}),
        ]:
            with pytest.raises(TypeError) as raised:
                subprocess.Popen(*args, **kwargs)
            told.append(str(raised.value))
        return told

    assert stage.record(scene) == stage.bare(scene)


def test_other_input_than_on_the_tape_is_a_divergence(stage):
    def scene(line):
        def play(work):
            with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as cat:
                cat.stdin.write(line)
                cat.stdin.close()
                cat.stdout.read()
            return cat.returncode

        return play

    stage.record(scene(b"the quick brown fox\n"))
    with pytest.raises(Divergence, match=r"'quick brown fox.*'slow brown fox"):
        stage.replay(scene(b"the slow brown fox\n"))


def test_input_that_differs_in_what_is_minted_anew_is_the_same(stage):
    def scene(number):
        def play(work):
            with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as cat:
                cat.stdin.write(b"I am pid %d\n" % number)
                cat.stdin.flush()
                return cat.stdout.readline()

        return play

    assert stage.record(scene(7)) == b"I am pid 7\n"
    assert stage.replay(scene(123456)) == b"I am pid 7\n"


def test_waiting_for_what_was_still_running_then_is_a_divergence(stage):
    """And not a replay that hangs."""

    def leave(work):
        process = subprocess.Popen(["sleep", "60"])
        left.append(process)
        return process.poll()

    def wait(work):
        return subprocess.Popen(["sleep", "60"]).wait()

    left = []
    assert stage.record(leave) is None
    left[0].kill()
    left[0].wait()
    with pytest.raises(Divergence, match="still running when the recorded run ended"):
        stage.replay(wait)


def test_hooks_are_taken_out_again(stage):
    before = subprocess.Popen.__init__, subprocess.run, os.read, os.kill, os.waitpid, os.execv
    stage.record(in_folder(["true"]))
    assert before == (
        subprocess.Popen.__init__,
        subprocess.run,
        os.read,
        os.kill,
        os.waitpid,
        os.execv,
    )


def test_a_program_that_reaps_its_children_in_a_signal_handler_does_not_hang(stage):
    """The handler may run in the middle of telling about the very process that it reaps."""

    def scene(work):
        def reap(*_):
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

        before = signal.signal(signal.SIGCHLD, reap)
        try:
            for _ in range(20):
                with subprocess.Popen(["sh", "-c", "seq 500"], stdout=PIPE) as process:
                    for _line in process.stdout:
                        pass
        finally:
            signal.signal(signal.SIGCHLD, before)

    stage.record(scene)
    assert [one["exit_code"] for one in stage.recorded.outcomes] == [0] * 20


def test_a_forked_child_keeps_nothing_of_its_parents_processes(stage):
    def scene(work):
        with subprocess.Popen(["cat"], stdin=PIPE, stdout=PIPE) as cat:
            cat.stdin.write(b"before\n")
            cat.stdin.flush()
            first = cat.stdout.readline()
            pid = os.fork()
            if pid == 0:
                cat.stdin.write(b"from the child\n")
                cat.stdin.flush()
                os._exit(0)
            os.waitpid(pid, 0)
            second = cat.stdout.readline()
        return first, second

    assert stage.record(scene) == (b"before\n", b"from the child\n")
    assert stage.recorded.stream("stdin") == b"before\n"
