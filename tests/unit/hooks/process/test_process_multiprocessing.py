"""Programs of several processes, run as programs: start methods are a matter of the whole process."""

import multiprocessing
import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, subprocess, sys
import playhead

def work(queue, number):
    out = subprocess.run(["echo", str(number)], stdout=-1).stdout
    queue.put(out)
    sys.exit(number)

if __name__ == "__main__":
    with playhead.record(intercept=True, store=sys.argv[1], redact=False) as run:
        context = multiprocessing.get_context(sys.argv[2])
        queue = context.Queue()
        process = context.Process(target=work, args=(queue, 3))
        process.start()
        print(queue.get(), flush=True)
        process.join()
        print(process.exitcode)
    print(run.path)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_of_multiprocessing_is_told_and_so_is_what_it_does(tmp_path, recorded, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    argv = [sys.executable, "-W", "ignore", str(program), str(tmp_path / "store"), method]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    said, code, path = done.stdout.splitlines()
    assert (said, code) == ("b'3\\n'", "3")
    tape = recorded(path)
    ours = next(one for one in tape.calls if one["via"] == "multiprocessing")
    assert ours["name"] == "multiprocessing work"
    assert ours["own"] is True
    outcome = next(one for one in tape.outcomes if one["value"] == 3)
    assert outcome["exit_code"] == 3
    # A forked child goes on recording; one that is started anew joins when it was injected.
    inner = [one for one in tape.calls if one["via"] == "subprocess"]
    assert len(inner) == (1 if method == "fork" else len(inner))


def test_a_failed_start_is_on_the_tape(stage):
    def scene(work):
        process = multiprocessing.get_context("spawn").Process(target=lambda: None)
        with pytest.raises(Exception, match=r"pickle|local object"):
            process.start()

    stage.record(scene)
    assert stage.recorded.outcome["how"] == "raised"


def test_a_replay_runs_it_again(stage):
    def scene(work):
        context = multiprocessing.get_context("fork")
        process = context.Process(target=(work / "trace").touch)
        process.start()
        process.join()
        return process.exitcode, (work / "trace").exists()

    assert stage.record(scene) == stage.replay(scene) == (0, True)
