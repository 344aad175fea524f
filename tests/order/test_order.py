"""A replay keeps the order of the tape. The short form of `make test-order`."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from tests.order.shapes import LIMIT_S, PLAYHEAD, measure, run
from tests.order.world import serve

# One program of each family; `make test-order` has all of them.
QUICK = (
    "queue_workers",
    "thread_pool_requests",
    "loop_and_threads",
    "loops_in_threads",
    "sse_streams",
    "tools_that_print",
    "aiohttp_streams",
    "anyio_scopes",
    "mcp_server_logs",
)

# No thread prints, makes a call or waits between its lines, so only the lock of the log file decides their order.
# In a replay the first thread is the slow one.
LOGS_INTO_A_FILE = """
import logging, os, threading, time

def compute(seconds):
    began = time.thread_time()
    while time.thread_time() - began < float(seconds):
        pass

def work(name, seconds, numbers):
    compute(seconds)
    logging.info("%s %s", name, numbers[0])
    compute(float(seconds) + wait[name])
    logging.info("%s %s", name, numbers[1])

wait = {"first": 0.5, "second": 0.01}
logging.basicConfig(filename="agent.log", level=logging.INFO, format="%(message)s")
slow, quick = os.environ.get("FIRST", 0), os.environ.get("SECOND", 0.2)
threads = [
    threading.Thread(target=work, args=("first", slow, (0, 3))),
    threading.Thread(target=work, args=("second", quick, (1, 2))),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

WORKERS = """
import queue, sys, threading
items = queue.Queue()

def work(n):
    items.put(n)

threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads:
    thread.start()
for _ in range(int(sys.argv[1])):
    print("got", items.get())
"""


# The program computes for longer than its timeout before it submits the job, as OpenTelemetry does at its start.
COMPUTES_FIRST = """
import concurrent.futures, time

began = time.thread_time()
while time.thread_time() - began < 0.6:
    pass
with concurrent.futures.ThreadPoolExecutor() as pool:
    job = pool.submit(lambda: "in time")
    try:
        print(job.result(timeout=0.5))
    except concurrent.futures.TimeoutError:
        print("too late")
    print(job.result())
"""


# The job ends while the loop computes, so the loop itself makes the callback when it asks for the result.
ENDS_BEFORE_IT_IS_ASKED = """
import asyncio, time
from concurrent.futures import ThreadPoolExecutor

def compute(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass

def work():
    compute(0.08)
    print("worked")

async def main():
    job = pool.submit(work)
    compute(0.4)
    asyncio.wrap_future(job).add_done_callback(lambda _: print("told"))
    for n in range(4):
        print("turn", n)
        await asyncio.sleep(0)

with ThreadPoolExecutor(1) as pool:
    asyncio.run(main())
"""


# A callback of a job that is done runs at once, in the lane that gives it to the job: LangGraph saves results in one.
# The first job ends before it has its callback, and the second one afterwards. Then a thread releases a semaphore
# shortly before another one looks at it, as LangGraph's stream does. At last the main thread takes an item before the
# thread that was notified of it wakes, and two threads put items into a stream. In a replay some of them are slower.
LOOKS_AT_OTHERS = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

slower = float(os.environ.get("SLOWER", 0))

def compute(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass

def tell(job):
    print("told", threading.current_thread() is threading.main_thread())
    pool.submit(print, "started by the callback")

with ThreadPoolExecutor(2) as pool:
    first = pool.submit(time.sleep, 0.1)
    compute(0.3)
    first.add_done_callback(tell)
    is_free = threading.Event()
    pool.submit(is_free.wait).add_done_callback(tell)
    is_free.set()
    time.sleep(0.1)
    print("slept")

def release():
    print("about to release")
    compute(slower)
    items.release()

items = threading.Semaphore(0)
thread = threading.Thread(target=release)
thread.start()
compute(0.02)
print("released", items.acquire(blocking=False), items.acquire(blocking=False))
thread.join()

class Stream(threading.Semaphore):
    def wait(self):
        with self._cond:
            while not self._value:
                self._cond.wait()

stream = Stream(0)
thread = threading.Thread(target=lambda: print("woken", stream.wait()))
thread.start()
time.sleep(0.1)
sys.setswitchinterval(0.005 if slower else 2)
stream.release()
compute(slower)
print("taken", stream.acquire(blocking=False))
stream.release()
thread.join()

def put(name, seconds):
    compute(seconds)
    stream.put(name)

from langgraph._internal._queue import SyncQueue
stream = SyncQueue()
threads = [threading.Thread(target=put, args=one) for one in (("first", slower), ("second", 0.03))]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(stream.get(), stream.get())
"""


# The first deadline passes while the program computes, the second one afterwards. By a clock that stands still while it
# computes, the second one would come first. The order of `end` is that in which the tasks are cancelled.
TRIO_COMPUTES = """
import time, trio

async def tick(n):
    try:
        await trio.sleep(10)
    finally:
        print("end", n)

async def first():
    with trio.move_on_after(0.05):
        async with trio.open_nursery() as nursery:
            for n in range(5):
                nursery.start_soon(tick, n)
    print("first")

async def second():
    await trio.sleep(0.02)
    began = time.thread_time()
    while time.thread_time() - began < 0.2:
        pass
    with trio.move_on_after(0.001) as scope:
        scope.deadline += 0.009
        await trio.sleep(10)
    print("second")

async def main():
    await trio.to_thread.run_sync(time.sleep, 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)

trio.run(main)
"""


# A thread of a tool prints while the loop is busy with another task, which prints afterwards.
TOOL_BESIDE_BUSY_LOOP = """
import asyncio, threading, time
import playhead

threading.Thread(target=int).start()

def work():
    time.sleep(0.05)
    print("worked")

@playhead.tool
async def use():
    await asyncio.to_thread(work)

async def compute():
    for _ in range(300):
        began = time.thread_time()
        while time.thread_time() - began < 0.001:
            pass
        await asyncio.sleep(0)
    print("computed")

async def main():
    await asyncio.gather(use(), compute())

asyncio.run(main())
"""


# The children print nothing, so all output is the program's own. While the main thread computes, the clock of a replay
# stands still, and the thread that sleeps comes to its points only afterwards.
CHILDREN_OF_THREADS = """
import os, subprocess, threading, time

def sleep():
    time.sleep(0.05)
    print("slept", flush=True)

def run(n):
    for k in range(12):
        subprocess.run(["true"])
        print("ran", n, k, flush=True)
        os.write(1, b"wrote %d %d\\n" % (n, k))

ended = subprocess.Popen(["true"])
other = threading.Thread(target=sleep)
other.start()
began = time.thread_time()
while time.thread_time() - began < 0.4:
    pass
ended.kill()
print(ended.wait(), flush=True)
other.join()
threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""


# The clock of a replay stands still while the thread computes, so the timeout that follows begins too early.
WAITS_AFTER_COMPUTING = """
import threading, time
ready, done = threading.Event(), threading.Event()

def work():
    began = time.thread_time()
    while time.thread_time() - began < 0.8:
        pass
    ready.set()
    print("in time" if done.wait(0.5) else "too late")

worker = threading.Thread(target=work)
worker.start()
print(ready.wait())
done.set()
worker.join()
"""


# As langgraph's SqliteSaver does: an installed package guards a connection that threads share with a lock of its own.
SAVER = """
import sqlite3, threading

class Saver:
    def __init__(self):
        self.lock = threading.Lock()
        self.connection = sqlite3.connect("saved.db", check_same_thread=False)
        self.connection.execute("create table rows(worker, step)")

    def put(self, *row):
        with self.lock:
            self.connection.execute("insert into rows values(?, ?)", row)
            self.connection.commit()
"""
SAVES_IN_THREADS = """
import os, sys, threading
sys.path.append(os.path.abspath("site-packages"))
import saver

def work(n):
    for step in range(12):
        saved.put(n, step)
        sum(range(20000 * (step * n % 4)))

saved = saver.Saver()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(saved.connection.execute("select * from rows").fetchall())
"""


# The garbage collector is off: a value that a thread held ends with the thread only if nothing else holds its frames.
HOLDS_VALUES = """
import gc, threading, time, weakref

gc.disable()

class Value:
    pass

def hold(known):
    value = Value()
    known.append(weakref.ref(value))
    time.sleep(0.02)
    time.sleep(0.02)

known = []
threads = [threading.Thread(target=hold, args=(known,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([one() is None for one in known])
"""


# Ends while a daemon thread waits for an answer, another one reads a stream, and two streams are not read to the end.
LEAVES_CALLS_OPEN = """
import os, sys, threading, time, urllib.request
import httpx

URL = sys.argv[1]

def wait():
    print(httpx.get(f"{URL}/wait?ms=8000").text)

def read():
    with urllib.request.urlopen(f"{URL}/sse?pieces=100&ms=60") as stream:
        for line in stream:
            print(line, flush=True)

client = httpx.Client()
answer = client.send(client.build_request("GET", f"{URL}/sse?pieces=9&ms=1"), stream=True)
lines = answer.iter_lines()
print(next(lines))
other = urllib.request.urlopen(f"{URL}/sse?pieces=9&ms=2")
print(other.readline())
for target in (wait, read):
    threading.Thread(target=target, daemon=True).start()
time.sleep(0.3)
print("end", flush=True)
if sys.argv[2] == "quick":
    os._exit(3)
sys.exit(3)
"""


@pytest.fixture(scope="module")
def site():
    with serve() as site:
        yield site


@pytest.mark.parametrize("name", QUICK)
def test_a_concurrent_program_prints_the_same_in_the_same_order(name, site):
    score = measure(name, site, recordings=1, replays=2)
    assert (score.identical, score.hangs, score.requests) == (2, 0, 0), score.failures


def record(folder, program, *args):
    path = folder / "program.py"
    path.write_text(program)
    return run(folder, "record", "--no-seal", "--", sys.executable, str(path), *args)


def test_a_timeout_for_a_job_begins_when_the_job_was_submitted(tmp_path):
    then = record(tmp_path, COMPUTES_FIRST)
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_the_values_of_a_thread_end_with_the_thread(tmp_path):
    then = record(tmp_path, HOLDS_VALUES)
    assert then.stdout == b"[True, True, True]\n"
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


@pytest.mark.parametrize("end", ["proper", "quick"])
def test_calls_that_are_open_when_the_program_ends_are_open_in_a_replay(end, tmp_path, site):
    then = record(tmp_path, LEAVES_CALLS_OPEN, site.url, end)
    assert (then.returncode, then.stdout[-4:]) == (3, b"end\n")
    assert b"could not be recorded" not in then.stderr
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


# It is killed while it computes, before its first call.
KILLED_EARLY = """
import os, subprocess, sys
print(os.getpid(), flush=True)
while os.path.exists(sys.argv[1]):
    pass
subprocess.run(["true"])
print("never")
"""


def test_a_run_that_was_killed_before_its_first_call_ends_at_that_call(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "program.py").write_text(KILLED_EARLY)
    flag = tmp_path / "flag"
    flag.touch()
    command = [*PLAYHEAD, "record", "--store", str(tmp_path / "store"), "--", sys.executable]
    with subprocess.Popen(
        [*command, "program.py", str(flag)], cwd=tmp_path / "work", stdout=subprocess.PIPE
    ) as recording:
        os.kill(int(recording.stdout.readline()), signal.SIGKILL)
    flag.unlink()
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, b"never" in now.stdout) == (0, False), now.stderr


def test_deadlines_of_trio_pass_in_the_order_of_the_tape_if_the_program_computes(tmp_path):
    then = record(tmp_path, TRIO_COMPUTES)
    # A lock of trio is not one of the program's, although a generated constructor makes it. `sleep(0)` is not a point.
    segments = (tmp_path / "store" / "runs").glob("*/tape-*.jsonl")
    text = "".join(segment.read_text() for segment in segments)
    assert '"lock:' not in text
    assert '"slept"' not in text
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_job_that_ended_before_a_loop_asked_for_its_result_wakes_the_loop_in_the_same_turn(
    tmp_path,
):
    then = record(tmp_path, ENDS_BEFORE_IT_IS_ASKED)
    assert then.stdout.startswith(b"worked\nturn 0\nturn 1\ntold\n")
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_thread_finds_jobs_semaphores_and_streams_as_on_the_tape(tmp_path):
    then = record(tmp_path, LOOKS_AT_OTHERS)
    assert then.stdout.startswith(b"told True\n")
    assert b"told False\n" in then.stdout
    now = run(tmp_path, "replay", "last", "--env", "SLOWER=0.2")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_output_of_a_tool_in_a_thread_has_its_place_beside_a_busy_loop(tmp_path):
    then = record(tmp_path, TOOL_BESIDE_BUSY_LOOP)
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_text_of_a_thread_is_not_taken_for_output_of_a_child_of_another_thread(tmp_path):
    then = record(tmp_path, CHILDREN_OF_THREADS)
    segments = (tmp_path / "store" / "runs").glob("*/tape-*.jsonl")
    assert not any('"wrote"' in segment.read_text() for segment in segments)
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr


def test_a_wait_for_an_event_ends_as_it_did_by_its_timeout_or_by_the_event(tmp_path):
    then = record(tmp_path, WAITS_AFTER_COMPUTING)
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()


def test_threads_take_the_lock_that_a_package_holds_around_its_statements_in_order(tmp_path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "saver.py").write_text(SAVER)
    then = record(tmp_path, SAVES_IN_THREADS)
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()


def test_threads_log_into_a_file_in_the_order_of_the_tape(tmp_path):
    record(tmp_path, LOGS_INTO_A_FILE)
    assert len((tmp_path / "agent.log").read_text().splitlines()) == 4
    now = run(tmp_path, "replay", "last", "--env", "FIRST=0.1", "--env", "SECOND=0")
    assert now.returncode == 0, now.stderr


def test_a_program_that_waits_for_what_never_comes_ends_and_says_where(tmp_path):
    record(tmp_path, WORKERS, "3")
    report = tmp_path / "report.json"
    words = [sys.executable, str(tmp_path / "program.py"), "4"]
    began = time.monotonic()
    now = run(tmp_path, "replay", "last", "--timeout", "1", "--report", str(report), "--", *words)
    assert time.monotonic() - began < LIMIT_S
    assert now.returncode == 3
    first = json.loads(report.read_text())["first_divergence"]
    assert first["kind"] == "stalled"
    assert "program.py:12 <module>" in first["detail"]


def test_the_verdict_says_that_the_order_is_not_kept(tmp_path):
    record(tmp_path, WORKERS, "3")
    now = run(tmp_path, "replay", "last", "--order", "calls")
    assert b"order of calls only" in b" ".join(now.stderr.split())


def test_an_unknown_order_is_a_usage_error():
    asked = [*PLAYHEAD, "replay", "last", "--order", "none"]
    ended = subprocess.run(asked, capture_output=True, check=False)
    assert ended.returncode == 2


NEIGHBOURS = """
import asyncio
import playhead

# The callbacks that wake the tools belong to a tool: a replay does not have them.
@playhead.tool
async def look(name, start=None):
    waiting[name] = asyncio.get_running_loop().create_future()
    if start is not None:
        asyncio.get_running_loop().call_later(0.01, start, asyncio.get_running_loop().call_soon)
    await waiting[name]
    print("said", name)
    return name

def wake(name):
    waiting[name].set_result(None)

def first_wakes_before_second(call_soon):
    wake("a")
    call_soon(lambda: (wake("b"), call_soon(wake, "c")))

def second_wakes_before_first(call_soon):
    call_soon(lambda: (wake("b"), call_soon(wake, "c")))
    wake("a")

# The second tool has three more callbacks before it in its turn than a replay has. The turn also has the task that
# prints `done a`, before it or behind it, and that task has no point.
def first_is_done_before_second(call_soon):
    wake("a")
    call_soon(call_soon, crowd, call_soon)

def second_wakes_before_first_is_done(call_soon):
    call_soon(call_soon, crowd, call_soon)
    wake("a")

def crowd(call_soon):
    for _ in range(3):
        call_soon(int)
    wake("b")
    call_soon(call_soon, wake, "c")

async def main():
    for start in (
        first_wakes_before_second,
        second_wakes_before_first,
        first_is_done_before_second,
        second_wakes_before_first_is_done,
    ):
        for one in asyncio.as_completed([look("a"), look("b"), look("c", start)]):
            print("done", await one)

waiting = {}
asyncio.run(main())
"""


def test_tools_that_end_in_neighbouring_turns_of_a_loop_wake_others_in_their_order(tmp_path):
    then = record(tmp_path, NEIGHBOURS)
    first, second, third, fourth = then.stdout.split(b"done c\n")[:4]
    assert first != second
    assert third != fourth
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()


LOGGED = """
import logging, sys
from concurrent.futures import ThreadPoolExecutor
import httpx, requests
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
session = requests.Session()

def ask(n):
    logging.debug("ask %s", n)
    for get in (session.get, httpx.get):
        logging.debug("got %s", get(f"{sys.argv[1]}/wait?n={n}&ms={n * 7 % 30}").json())

with ThreadPoolExecutor(4) as pool:
    list(pool.map(ask, range(6)))
"""

# The session is not closed, and aiohttp logs that with the connection.
UNCLOSED = """
import asyncio, sys
import aiohttp

async def main():
    session = aiohttp.ClientSession()
    async with session.get(f"{sys.argv[1]}/wait?n=1") as answer:
        print(await answer.json())

asyncio.run(main())
"""


def test_a_connection_that_was_not_closed_is_not_missed_in_a_replay(tmp_path, site):
    (tmp_path / "program.py").write_text(UNCLOSED)
    command = [
        *PLAYHEAD,
        "record",
        "--store",
        "store",
        "--",
        sys.executable,
        "program.py",
        site.url,
    ]
    then = subprocess.run(command, cwd=tmp_path, stdout=-1, stderr=subprocess.STDOUT, check=True)
    assert b"Unclosed connector" in then.stdout
    now = run(tmp_path, "replay", "last")
    assert now.returncode == 0, now.stderr.decode()
    assert b"Unclosed client session" in now.stderr
    assert b"log lines of HTTP libraries" in now.stderr


def test_what_http_libraries_log_about_connections_is_left_out(tmp_path, site):
    then = record(tmp_path, LOGGED, site.url)
    connections = [b"httpcore.", b"urllib3."]
    assert all(name in then.stderr for name in connections)
    now = run(tmp_path, "replay", "last")
    assert now.returncode == 0, now.stderr.decode()
    assert not any(name in now.stderr for name in connections)
    own = [line for line in then.stderr.splitlines() if line.startswith((b"root", b"httpx"))]
    assert own == now.stderr.splitlines()[: len(own)]
    assert b"log lines of HTTP libraries" in now.stderr


FILLED = """
import multiprocessing, time

def fill(items, name, seconds):
    time.sleep(seconds)  # takes no time in a replay
    for n in range(3):
        items.put((name, n))

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    items = context.Queue()
    workers = [
        context.Process(target=fill, args=(items, name, seconds))
        for name, seconds in (("late", 1.0), ("early", 0.0))
    ]
    for one in workers:
        one.start()
    for _ in range(6):
        print(*items.get())
    for one in workers:
        one.join()
    with context.Pool(2) as pool:
        for one in [pool.apply_async(int, (n,), callback=show) for n in range(3)]:
            one.get(30)
"""

# The pool has the next result while the callback of the first one waits for the place of its second line.
SHOWN = """
def show(n):
    print("got", n)
    began = time.thread_time()
    while time.thread_time() - began < 0.1:
        pass
    print("shown", n)
"""


def test_what_processes_put_into_queues_and_pools_comes_in_the_order_of_the_tape(tmp_path):
    then = record(tmp_path, SHOWN + FILLED)
    assert then.stdout.count(b"shown") == 3
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()


INTERRUPTED = {
    "while it sleeps": """
        import threading, time
        # By another thread: an interrupt inside of `print` would be another case.
        threading.Timer(0.3, print, ("ready",), {"flush": True}).start()
        time.sleep(30)
        """,
    "in an event loop": """
        import asyncio, threading
        async def main():
            child = await asyncio.create_subprocess_exec("echo", "hello", stdout=-1)
            print(await child.communicate())
            threading.Timer(0.3, print, ("ready",), {"flush": True}).start()
            await asyncio.sleep(30)
            print("never")
        asyncio.run(main())
        """,
    "while it waits for a child that the same Ctrl-C ends": """
        import subprocess, threading
        threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
        subprocess.run(["sh", "-c", "trap 'exit 7' INT; sleep 30 >/dev/null & wait"])
        """,
    "while it prints": """
        print("ready", flush=True)
        while True:
            print("again", flush=True)
        """,
}


@pytest.mark.parametrize("program", INTERRUPTED.values(), ids=INTERRUPTED)
def test_a_run_that_was_interrupted_replays_up_to_the_interrupt_and_says_so(tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    words = [*PLAYHEAD, "record", "--store", str(tmp_path / "store"), "--no-seal", "--"]
    with subprocess.Popen(
        [*words, sys.executable, str(path)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as recording:
        said = [*iter(recording.stdout.readline, b"ready\n")]
        os.killpg(recording.pid, signal.SIGINT)
        said += [b"ready\n", recording.stdout.read()]
    assert recording.returncode == 130
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, b"".join(said)), now.stderr.decode()
    assert b"Ctrl-C interrupted the recorded run" in now.stderr


HANDLED = """
import os, signal, subprocess, threading, time

class Late(Exception):
    pass

def late(number, frame):
    raise Late(signal.Signals(number).name)

signal.signal(signal.SIGALRM, late)
for n in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        time.sleep(0.05 * (n + 1))
        print("slept", n)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Late as error:
        print("late", n, error)
signal.alarm(1)
n = 0
try:
    while True:
        n += 1
except Late:
    print("computed until the alarm")
signal.signal(signal.SIGALRM, lambda *_: print("tick"))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
for _ in range(3):
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)

stopped = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: stopped.set())

def stop():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGUSR1)
    print("sent")

threading.Thread(target=stop).start()
subprocess.run(["true"])
print("stopped", stopped.wait(10))
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_handlers_of_signals_run_where_they_ran(tmp_path):
    then = record(tmp_path, HANDLED)
    # On a busy machine the timer also fires between two pauses.
    assert then.stdout.count(b"tick") >= 3
    assert b"interrupted True" in then.stdout
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()


TICKING = """
import signal, time
ticks = 0

def tick(*_):
    global ticks
    ticks += 1
    print("tick", ticks, flush=True)

signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
for n in range(4):
    time.sleep(0.05)
    print("slept", n, flush=True)
    print("summed", n, sum(range(300_000)), flush=True)
signal.setitimer(signal.ITIMER_REAL, 0)
print("end", ticks)
"""


def test_a_timer_that_fires_again_and_again_prints_where_it_printed(tmp_path):
    then = record(tmp_path, TICKING)
    assert then.stdout.count(b"tick") > 3
    now = run(tmp_path, "replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr.decode()
