"""Jobs of executors: their end is a point, in the order in which the program can learn of it.

Not within a tool: a replay does not run the tool.
"""

import subprocess
import sys

import pytest

from playhead import events
from playhead.recording import points
from playhead.tape.reader import Tape

PROGRAM = """
import asyncio, sys, threading
from concurrent.futures import ThreadPoolExecutor
import playhead

def ends_late(call_soon):
    # Returns a job that ends after its task waits for it.
    is_awaited = threading.Event()
    call_soon(call_soon, is_awaited.set)
    return is_awaited.wait

async def look():
    await asyncio.to_thread(ends_late(asyncio.get_running_loop().call_soon))

def count():
    is_free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(is_free.wait).add_done_callback(lambda _: print("counted"))
        is_free.set()

if sys.argv[2] == "tools":
    look, count = playhead.tool(look), playhead.tool(count)
with playhead.record(intercept=True, store=sys.argv[1], level="full") as run:
    asyncio.run(look())
    count()
    print(run.path)
"""


# The first job frees the second one when it gives its result to its future: its end is on the tape by then.
ENDINGS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import playhead

class Slow:
    def __init__(self, condition):
        self.condition = condition

    def __enter__(self):
        if threading.current_thread() is not threading.main_thread():
            is_free.set()
            print(has_ended.wait(0.3))
        return self.condition.__enter__()

    def __exit__(self, *raised):
        return self.condition.__exit__(*raised)

    def __getattr__(self, name):
        return getattr(self.condition, name)

may_begin, is_free, has_ended = threading.Event(), threading.Event(), threading.Event()
with playhead.record(intercept=True, store=sys.argv[1], level="full"), ThreadPoolExecutor(2) as pool:
    first, second = pool.submit(may_begin.wait), pool.submit(is_free.wait)
    second.add_done_callback(lambda _: has_ended.set())
    first._condition = Slow(first._condition)
    may_begin.set()
"""


def test_a_job_ends_for_the_program_in_the_order_of_the_tape(tmp_path):
    words = [sys.executable, "-c", ENDINGS, str(tmp_path)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert printed == "False\n"


def kinds_of_points(tmp_path, way):
    """The kinds of the points in lanes: points of calls have no lane."""
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / way), way]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    taped = [one for one in Tape(printed[-1]).events() if one.kind == events.ORDER]
    rows = [row for event in taped for row in points.unpack(event.data)]
    return [row[4] for row in rows if type(row[3]) is str]


@pytest.mark.parametrize(
    ("way", "jobs", "shows"),
    [("tools", 0, False), ("functions", 1, True)],
    ids=["in tools", "in functions"],
)
def test_jobs_that_end_late_and_their_callbacks_are_points_outside_of_tools_only(
    tmp_path, way, jobs, shows
):
    found = kinds_of_points(tmp_path, way)
    ends_of_executors = 1
    assert found.count(points.SOON) - ends_of_executors == jobs
    assert (points.DONE in found) is shows
