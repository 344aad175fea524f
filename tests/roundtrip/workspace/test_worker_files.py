"""A replay runs the workers of the program again: their own code changes files, and only their calls are served."""

from __future__ import annotations

from tests.roundtrip.workspace.conftest import Project
from tests.roundtrip.workspace.test_replay_files import replay

# Each worker appends to a file of its own, by its own code and by a command. Two workers run at the same time, so
# their commands share changes. One worker is killed while its command runs.
WORKERS = """
import multiprocessing, os, signal, subprocess, sys
def append(path, text):
    with open(path, "a") as file:
        file.write(text + "\\n")
def shell(script):
    subprocess.run(["sh", "-c", script], check=True)
def work(name):
    append(f"{name}.txt", "own")
    shell(f"echo command >> {name}.txt; date +%N > {name}.time")
    append(f"{name}.txt", "own again")
    return open(f"{name}.txt").read()
def nest(name):
    started = multiprocessing.get_context("fork").Process(target=work, args=(name,))
    started.start()
    started.join()
    append(f"{name}.txt", "outer")
def die():
    append("killed.txt", "own")
    script = "echo command >> killed.txt; echo; cat"
    process = subprocess.Popen(["sh", "-c", script], stdin=-1, stdout=-1)
    process.stdout.readline()
    os.kill(os.getpid(), signal.SIGKILL)
def run(method, target, *args):
    process = multiprocessing.get_context(method).Process(target=target, args=args)
    process.start()
    process.join()
    print(process.exitcode)
if __name__ == "__main__":
    run("fork", nest, "nested")
    run("spawn", work, "spawn")
    run("forkserver", work, "forkserver")
    run("fork", die)
    if not (child := os.fork()):
        work("by_hand")
        os._exit(0)
    os.waitpid(child, 0)
    fork = multiprocessing.get_context("fork")
    pair = [fork.Process(target=work, args=(name,)) for name in ("one", "two")]
    [one.start() for one in pair]
    [one.join() for one in pair]
    append("nested.txt", "parent")
    shell("echo parent command >> nested.txt")
    # A Python that a call runs is served whole, and its workers with it.
    script = f"import runpy; runpy.run_path({__file__!r})['nest']('inner')"
    subprocess.run([sys.executable, "-c", script], check=True)
    print({name: open(name).read() for name in sorted(os.listdir("."))})
"""


def test_files_of_workers_are_written_once(project: Project) -> None:
    project.record(WORKERS)
    lines = ["own", "command", "own again"]
    for name in ("spawn", "forkserver", "by_hand", "one", "two"):
        assert (project.folder / f"{name}.txt").read_text().split("\n") == [*lines, ""]
    told = replay(project)
    assert told["verdict"] == "identical", told["stderr"]
    assert told["files"]["same"] is True
