"""A changed program replays up to the change: the report names the step, and the replay ends.

Each program of the order suite has one call changed. `LIMIT_S` holds for everything a replay does, its start and
its report included; the program itself ends at once, or after `--timeout` where it waits for the lost answer.
"""

import json
import os
import subprocess
import sys

import pytest
from tests.order.shapes import LIMIT_S, PROGRAMS, RECORDING_LIMIT_S, run, saturated
from tests.order.world import serve

_WAIT = 'f"{URL}/wait"'
_OTHER = 'f"{URL}/other" if str(n) == "3" else f"{URL}/wait"'

# The program, what is changed in it, and by what.
CHANGES = {
    "gather_httpx": (_WAIT, _OTHER),
    "to_thread_tools": ("echo {n}", "echo {n + (n == 3)}"),
    "thread_pool_requests": (_WAIT, _OTHER),
    "queue_workers": (_WAIT, _OTHER),
    "sse_streams": ('f"{URL}/sse"', 'f"{URL}/other" if n == 3 else f"{URL}/sse"'),
    "deadline": (_WAIT, _OTHER),
    "async_processes": ("echo {n}.$i", "echo {n + (n == 3)}.$i"),
    "lock_total": (_WAIT, _OTHER),
    "two_loops": (_WAIT, 'f"{URL}/other" if (name, n) == ("b", 3) else f"{URL}/wait"'),
    "process_pool": ("/wait?n={n}", "/wait?n={n + 90 * (n == 3)}"),
    "trio_nursery": (_WAIT, _OTHER),
    "tools_that_print": (
        "@playhead.tool\nasync def look(",
        '@playhead.tool(name="renamed")\nasync def look(',
    ),
}


@pytest.fixture(scope="module")
def site():
    with serve() as site:
        yield site


def _changed(name, folder, url, *, busy, timeout="2"):
    """Record the program, change it, replay it: the report, the process and the calls of the tape."""
    program = folder / f"{name}.py"
    program.write_text((PROGRAMS / f"{name}.py").read_text())
    words = (sys.executable, str(program), url)
    run(folder, "record", "--no-seal", "--", *words, limit_s=RECORDING_LIMIT_S)
    old, new = CHANGES[name]
    assert old in program.read_text()
    program.write_text(program.read_text().replace(old, new))
    report = folder / "report.json"
    asked = ("replay", "last", "--timeout", timeout, "--report", str(report), "--", *words)
    try:
        with saturated(busy=busy):
            now = run(folder, *asked)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the replay of the changed {name} did not end within {LIMIT_S} s")
    return json.loads(report.read_text()), now


# The short form, for `make test`; CHANGED=all tries every program.
SHORT = ("gather_httpx", "queue_workers", "tools_that_print", "two_loops")


@pytest.mark.parametrize("name", sorted(CHANGES) if os.environ.get("CHANGED") == "all" else SHORT)
def test_a_changed_call_of_a_concurrent_program_is_found_at_its_step(name, site, tmp_path):
    report, now = _changed(name, tmp_path, site.url, busy=len(name) % 2 == 0)
    assert (now.returncode, report["verdict"]) == (3, "diverged"), now.stderr.decode()
    first = report["first_divergence"]
    assert first["kind"] == "missed"
    if name == "process_pool":
        # A job goes to whichever worker is free, so the lane does not say which call it should have made.
        assert first["nearest"]["differences"]
    else:
        assert first["step"] in {
            one["step"] for one in report["divergences"] if one["kind"] == "unused"
        }


SKIPS = """
import queue, sys, threading
items = queue.Queue()

def work(n):
    if str(n) != sys.argv[1]:
        items.put(n)

threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
while not items.empty():
    print("got", items.get())
"""


def test_the_report_says_where_the_order_differs_and_judges_the_output(tmp_path):
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    program.write_text(SKIPS)
    words = (sys.executable, str(program))
    run(tmp_path, "record", "--no-seal", "--", *words, "none")
    now = run(tmp_path, "replay", "last", "--report", str(report), "--", *words, "2")
    found = json.loads(report.read_text())
    assert (now.returncode, found["first_divergence"]["kind"]) == (3, "output")
    assert any(
        note.startswith("The order differs from the tape at step 1") for note in found["notes"]
    )


def test_a_replay_that_keeps_the_order_does_not_say_that_it_differs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SKIPS)
    run(tmp_path, "record", "--no-seal", "--", sys.executable, str(program), "none")
    now = run(tmp_path, "replay", "last")
    assert now.returncode == 0
    assert b"order differs" not in now.stderr


# In both programs the main thread waits in C, where Playhead does not see it: for a pipe, and for workers that died.
WAIT_IN_C = {
    "a pipe": """
import os, subprocess, sys
reader, writer = os.pipe()
print("begun", flush=True)
if len(sys.argv) > 1:
    try:
        subprocess.run(["true"])
    finally:
        os.read(reader, 1)
""",
    "dead workers": """
import multiprocessing, sys

def work(results):
    if len(sys.argv) > 1:
        raise ValueError("changed")
    results.put(1)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=work, args=(results,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for _ in workers:
        print(results.get(timeout=5))
    for worker in workers:
        worker.join()
""",
}


@pytest.mark.parametrize("name", sorted(WAIT_IN_C))
def test_a_changed_program_that_waits_where_python_does_not_see_it_ends(name, tmp_path):
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    program.write_text(WAIT_IN_C[name])
    words = (sys.executable, str(program))
    run(tmp_path, "record", "--no-seal", "--", *words)
    asked = ("replay", "last", "--timeout", "0.5", "--report", str(report), "--", *words, "changed")
    now = run(tmp_path, *asked)
    assert now.returncode == 3, now.stderr.decode()
    assert json.loads(report.read_text())["verdict"] == "diverged"


IDLE = """
import ctypes, sys
if len(sys.argv) > 1:
    ctypes.CDLL(None).usleep(3_500_000)
print("done")
"""


def test_a_replay_that_is_idle_in_c_without_a_divergence_is_not_ended(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(IDLE)
    words = (sys.executable, str(program))
    run(tmp_path, "record", "--no-seal", "--", *words)
    now = run(tmp_path, "replay", "last", "--timeout", "0.5", "--", *words, "idle")
    assert (now.returncode, now.stdout) == (0, b"done\n"), now.stderr.decode()


def test_a_replay_that_has_diverged_does_not_wait_for_the_whole_timeout(site, tmp_path):
    report, now = _changed("queue_workers", tmp_path, site.url, busy=False, timeout="40")
    kinds = [one["kind"] for one in report["divergences"]]
    assert (now.returncode, kinds[0]) == (3, "missed"), now.stderr.decode()
    # With a wait of 40 s the replay would not have ended within the limit of `run`.
    assert "stalled" in kinds
