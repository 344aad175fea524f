"""A shim stands where a program stood: the caller must not be able to tell, and the tape tells all."""

import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import pytest

from playhead.launch.shims import post
from playhead.replay.matching.taped import TapedCall

PIPE = subprocess.PIPE


def outcome(call: TapedCall) -> dict:
    assert call.outcome is not None
    return call.outcome.data


def test_streams_and_exit_code_are_the_programs_own_and_on_the_tape(desk):
    started = desk.start(
        *("sh", "-c", "/bin/cat; echo oh >&2; exit 3"), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert started.communicate(b"in\0\xff") == (b"in\0\xff", b"oh\n")
    assert started.returncode == 3
    (call,) = desk.end()
    assert call.request == {"argv": ["sh", "-c", "/bin/cat; echo oh >&2; exit 3"], "stdin": "pipe"}
    said = [desk.said(call, one) for one in ("stdin", "stdout", "stderr", "closed")]
    assert said == [b"in\0\xff", b"in\0\xff", b"oh\n", b"stdin"]
    assert (outcome(call)["value"], outcome(call)["exit_code"]) == (3, 3)
    assert call.event.data["via"] == "shim"


def test_megabytes_arrive_whole_and_in_order(desk):
    sent = os.urandom(3_000_000)
    started = desk.start("cat", stdin=PIPE, stdout=PIPE)
    assert started.communicate(sent)[0] == sent
    (call,) = desk.end()
    assert desk.said(call, "stdout") == sent


def test_stdout_and_stderr_in_one_pipe_keep_their_order(desk):
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    started = desk.start("sh", "-c", script, stdout=PIPE, stderr=subprocess.STDOUT)
    wanted = b"".join(b"o%d\ne%d\n" % (i, i) for i in range(1, 10))
    assert started.communicate()[0] == wanted
    (call,) = desk.end()
    assert (call.event.data["stderr"], desk.said(call, "stdout")) == ("stdout", wanted)


def test_a_program_that_dies_of_a_signal_dies_of_it_for_the_caller_too(desk):
    started = desk.start("sh", "-c", "kill -9 $$", stdout=PIPE)
    assert started.wait() == -9
    (call,) = desk.end()
    assert (outcome(call)["value"], outcome(call)["signal"]) == (-9, "SIGKILL")


def test_a_signal_from_the_caller_reaches_the_program_and_the_tape(desk):
    script = "trap 'echo caught; exit 7' TERM; echo up; read x"
    started = desk.start("sh", "-c", script, stdin=PIPE, stdout=PIPE)
    assert started.stdout.readline() == b"up\n"
    started.terminate()
    assert started.stdout.read() == b"caught\n"
    assert started.wait() == 7
    started.stdin.close()
    (call,) = desk.end()
    assert desk.said(call, "signal") == b"SIGTERM"


@pytest.mark.parametrize("desk", ["native"], indirect=True)
def test_a_signal_to_the_whole_group_reaches_the_program_once(desk):
    script = "n=0; trap 'n=$((n+1))' TERM; echo up; read x; echo $n"
    started = desk.start("bash", "-c", script, stdin=PIPE, stdout=PIPE, start_new_session=True)
    assert started.stdout.readline() == b"up\n"
    os.killpg(started.pid, signal.SIGTERM)
    # The reader of the trap goes on: `read` is taken up again, and the count is what came.
    assert started.communicate(b"\n")[0] == b"1\n"
    desk.end()


@pytest.mark.parametrize("desk", ["native"], indirect=True)
def test_a_shim_that_is_killed_takes_the_program_with_it(desk):
    started = desk.start("sh", "-c", "echo $$; read x", stdin=PIPE, stdout=PIPE)
    program = os.pidfd_open(int(started.stdout.readline()))
    started.kill()
    assert select.select([program], [], [], 60)[0]
    os.close(program)
    (call,) = desk.end()
    assert outcome(call)["how"] == "left"


def test_a_reader_that_leaves_ends_the_program(desk):
    started = desk.start("sh", "-c", "while echo y; do :; done", stdout=PIPE, stderr=PIPE)
    started.stdout.readline()
    started.stdout.close()
    assert started.wait() != 0
    desk.end()


def test_a_stdin_that_the_caller_reads_from_is_left_to_him(desk):
    loop = f"while read line; do {desk.shims.folder}/bin/cat /dev/null; echo $line; done"
    done = subprocess.run(
        ["/bin/sh", "-c", loop], input=b"a\nb\nc\n", env=desk.env, capture_output=True, check=True
    )
    assert done.stdout == b"a\nb\nc\n"
    assert [call.request["stdin"] for call in desk.end()] == ["inherited"] * 3


def test_only_a_stdin_that_the_program_redirects_from_dev_null_is_null(desk):
    cat = f"{desk.shims.folder}/bin/cat"
    script = f"{cat} /dev/null; {cat} </dev/null"
    for redirect in ("exec </dev/null", "exec <&-", ":"):
        words = ["/bin/bash", "-c", f"{redirect}; {script}; :"]
        subprocess.run(words, input=b"", env=desk.env, check=True, timeout=30)
    kinds = [call.request["stdin"] for call in desk.end()]
    # If the caller's own stdin is /dev/null, a redirection from there cannot be told from an inherited stdin.
    assert kinds == ["inherited", "inherited", *("inherited", "null") * 2]


def test_files_are_the_programs_own_and_their_contents_are_on_the_tape(desk, tmp_path):
    (tmp_path / "in").write_text("question\n")
    (tmp_path / "out").write_text("before\n")
    with open(tmp_path / "in", "rb") as given, open(tmp_path / "out", "ab") as taken:
        assert desk.start("tee", stdin=given, stdout=taken).wait() == 0
    assert (tmp_path / "out").read_text() == "before\nquestion\n"
    (call,) = desk.end()
    assert call.request["stdin"] == {"text": "question\n"}
    assert desk.said(call, "stdout") == b"question\n"


def test_a_file_for_both_outputs_is_on_the_tape_once(desk, tmp_path):
    with open(tmp_path / "out", "wb") as both:
        started = desk.start("sh", "-c", "echo o; echo e >&2; echo o", stdout=both, stderr=both)
        assert started.wait() == 0
    (call,) = desk.end()
    assert [desk.said(call, one) for one in ("stdout", "stderr")] == [b"o\ne\no\n", b""]


def test_where_the_shims_are_is_no_part_of_what_was_asked(desk):
    shims = f"{desk.shims.folder}/bin"
    assert desk.start("sh", "-c", f"PATH={shims}:/bin; : {shims}/git").wait() == 0
    (call,) = desk.end()
    assert call.request["argv"] == ["sh", "-c", "PATH=/bin; : git"]


def test_a_terminal_is_a_terminal_and_closed_is_closed(desk):
    leader, follower = pty.openpty()
    kept, other = os.pipe()
    script = f"test -t 0 && test -t 1 && ! test -e /dev/fd/2 && test -e /dev/fd/{kept}"
    started = desk.start(
        *("sh", "-c", script), stdin=follower, stdout=follower, pass_fds=[kept],
        preexec_fn=lambda: os.close(2),
    )  # fmt: skip
    assert started.wait() == 0
    for fd in (leader, follower, kept, other):
        os.close(fd)
    (call,) = desk.end()
    assert [call.event.data[one] for one in ("stdout", "stderr")] == ["tty", "closed"]


def test_children_that_a_program_leaves_behind_keep_its_output(desk, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"{{ read x < {gate}; echo late; }} & echo early"
    started = desk.start("sh", "-c", script, stdout=PIPE)
    assert started.wait() == 0  # before the child has written anything
    gate.write_text("go\n")
    assert started.stdout.read() == b"early\nlate\n"
    desk.end()


def test_the_caller_goes_on_unharmed_when_the_recorder_is_killed(desk):
    started = desk.start("sh", "-c", "echo up; cat; exit 5", stdin=PIPE, stdout=PIPE)
    assert started.stdout.readline() == b"up\n"
    os.kill(desk.sidecar.pid, signal.SIGKILL)
    os.waitpid(desk.sidecar.pid, 0)
    rest = b"on and on\n" * 50_000
    assert started.communicate(rest)[0] == rest
    assert started.returncode == 5
    again = desk.start("sh", "-c", "echo still; exit 6", stdout=PIPE)
    assert (again.communicate()[0], again.returncode) == (b"still\n", 6)


def test_what_a_hooked_python_has_taped_is_not_taped_again(desk):
    env = {"PLAYHEAD_PARENT": f"{os.getpid()}:7", "PLAYHEAD_RUN": str(desk.run)}
    script = "cat /dev/null; echo $PLAYHEAD_PARENT"
    started = desk.start("sh", "-c", script, stdout=PIPE, env=env)
    assert started.communicate()[0] == f"{os.getpid()}:7\n".encode()
    (inner,) = desk.end()  # what it started in turn hangs under the call that Python has taped
    assert inner.request["argv"] == ["cat", "/dev/null"]
    assert inner.event.parent == f"{os.getpid()}:7"


def test_a_shim_inside_a_shim_is_a_child_in_a_lane_of_its_own(desk):
    env = {"PLAYHEAD_RUN": str(desk.run), "PLAYHEAD_PARENT": "1:0", "PLAYHEAD_LANE": "main"}
    assert desk.start("sh", "-c", "cat /dev/null; :", env=env).wait() == 0
    outer, inner = desk.end()
    assert (outer.event.parent, outer.lane) == ("1:0", "main")
    assert (inner.event.absolute(inner.event.parent), inner.lane) == (outer.ref, "main/sh-1")


def test_the_folder_is_for_its_user_alone_and_gone_in_the_end(desk):
    folder = desk.shims.folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(one.name for one in (folder / "bin").iterdir()) == ["bash", "cat", "sh", "tee"]
    is_native = (folder / "bin" / "sh").read_bytes().startswith(b"\x7fELF")
    assert is_native == (desk.make == "native")
    desk.end()
    assert not Path(folder).exists()


def test_a_folder_that_a_killed_run_has_left_is_cleared_away_some_day(desk):
    left = desk.shims.folder.parent / "playhead-shims-test-left-behind"
    (left / "bin").mkdir(parents=True)
    os.utime(left, (0, 0))
    os.utime(desk.shims.folder, (0, 0))  # old as well, but somebody is there
    post.remove_folder(post.make_folder(os.environ))
    assert not left.exists()
    assert desk.shims.folder.exists()
    desk.end()
