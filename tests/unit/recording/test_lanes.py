"""A lane is where work was started from: the same name in every run, whatever the scheduler does."""

import asyncio
import contextvars
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import playhead
from playhead.hooks.order import lane_hooks
from playhead.recording import lanes
from playhead.tape.reader import Tape


@pytest.fixture
def run(tmp_path):
    with playhead.record(store=tmp_path) as run:
        yield run


def lanes_of(run):
    """What each event was called, and the lane that it was in."""
    ours = ("segment.start", "run.start", "run.end", "segment.end")
    return {event.data: event.lane for event in Tape(run.path).events() if event.kind not in ours}


def fresh(function):
    """Run in a lane that nothing was started from before."""
    with playhead.lane("root"):
        return function()


def test_the_programs_own_strand_is_main(run):
    run.emit("x", "here")
    assert lanes_of(run) == {"here": lanes.current.get().name}


def test_a_lane_can_be_named_and_left(run):
    with playhead.lane("worker-3") as lane:
        run.emit("x", "inside")
        assert lane.name == "worker-3"
    run.emit("x", "outside")

    async def main():
        async with playhead.lane("worker-4"):
            run.emit("x", "async")

    asyncio.run(main())
    got = lanes_of(run)
    assert (got["inside"], got["async"]) == ("worker-3", "worker-4")
    assert got["outside"] not in ("worker-3", "worker-4")


def test_tasks_are_numbered_in_the_order_in_which_they_were_started(run):
    async def work(name, delays):
        for _ in range(delays):
            await asyncio.sleep(0)
        run.emit("x", name)
        await asyncio.gather(*(leaf(f"{name}.{n}") for n in range(2)))

    async def leaf(name):
        await asyncio.sleep(0)
        run.emit("x", name)

    async def main():
        tasks = [asyncio.create_task(work(str(n), 5 - n)) for n in range(4)]
        await asyncio.gather(*tasks)

    fresh(lambda: asyncio.run(main()))
    expected = {str(n): f"root/{n + 1}" for n in range(4)}
    expected |= {f"{n}.{m}": f"root/{n + 1}/{m + 1}" for n in range(4) for m in range(2)}
    assert lanes_of(run) == expected


def test_a_coroutine_that_is_only_awaited_stays_in_its_lane(run):
    async def inner():
        run.emit("x", "awaited")

    async def main():
        await inner()

    fresh(lambda: asyncio.run(main()))
    assert lanes_of(run) == {"awaited": "root"}


def test_threads_have_lanes_of_their_own_and_know_what_they_are_part_of(run):
    def work(name):
        run.emit("x", name)

    def main():
        with run.turn("t") as turn:
            threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return turn

    fresh(main)
    events = {event.data: event for event in Tape(run.path).events() if event.kind == "x"}
    assert {name: event.lane for name, event in events.items()} == {
        "t0": "root/1",
        "t1": "root/2",
        "t2": "root/3",
    }
    start = next(event for event in Tape(run.path).events() if event.kind == "turn.start")
    assert {event.parent for event in events.values()} == {start.seq}


def test_threads_that_run_in_a_copied_context_have_lanes_of_their_own(run):
    def start():
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(run.emit, "x", name))
            for name in ("a", "b")
        ]
        for thread in threads:
            thread.start()
            thread.join()

    fresh(start)
    assert lanes_of(run) == {"a": "root/1", "b": "root/2"}


def test_a_thread_is_left_as_it_was(run):
    class Worker(threading.Thread):
        def run(self):
            self.result = 7

    worker = Worker()
    worker.start()
    worker.join()
    assert worker.result == 7
    assert "run" not in vars(worker)

    own = threading.Thread()
    calls = []
    own.run = patched = lambda: calls.append(1)
    own.start()
    own.join()
    assert (calls, own.run) == ([1], patched)
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        own.start()
    assert own.run is patched


def test_a_thread_that_was_never_initialised_fails_as_ever():
    class Lazy(threading.Thread):
        def __init__(self):
            self.x = 1

    with pytest.raises(RuntimeError, match="not called"):
        Lazy().start()


def test_jobs_are_numbered_where_they_are_submitted_whatever_worker_runs_them(run):
    def main():
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(run.emit, "x", f"j{n}") for n in range(8)]
            for future in futures:
                future.result()

    fresh(main)
    assert lanes_of(run) == {f"j{n}": f"root/{n + 1}" for n in range(8)}


def test_what_asyncio_runs_in_threads_has_a_lane_of_its_own(run):
    async def main():
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, run.emit, "x", "executor")
        await asyncio.to_thread(run.emit, "x", "to_thread")

    fresh(lambda: asyncio.run(main()))
    assert lanes_of(run) == {"executor": "root/1", "to_thread": "root/2"}


@pytest.mark.parametrize("seed", range(5))
def test_lanes_are_the_same_whatever_the_timing(tmp_path, seed):
    chance = random.Random(seed)

    def record(name):
        with playhead.record(store=tmp_path, run_id=f"{name}{seed}") as run, playhead.lane("root"):
            asyncio.run(program(run, chance))
        return lanes_of(run)

    assert record("a") == record("b")


async def program(run, chance):
    async def branch(name, depth):
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        run.emit("x", name)
        if depth:
            await asyncio.gather(*(branch(f"{name}.{n}", depth - 1) for n in range(2)))
            await asyncio.to_thread(spread, f"{name}.t")

    def spread(name):
        run.emit("x", name)
        with ThreadPoolExecutor(chance.randrange(1, 4)) as pool:
            futures = [pool.submit(run.emit, "x", f"{name}.{n}") for n in range(3)]
            chance.shuffle(futures)
            for future in futures:
                future.result()

    await branch("r", 2)


def test_a_chain_of_tasks_does_not_grow_its_name_for_ever(run):
    async def chain(left):
        if left:
            await asyncio.create_task(chain(left - 1))
        else:
            run.emit("x", "end")

    fresh(lambda: asyncio.run(chain(200)))
    assert len(lanes_of(run)["end"]) < 60
    again = lanes_of(run)["end"]
    assert again.startswith("root/~")


def test_threads_that_share_a_lane_never_get_the_same_name():
    lane = lanes.Lane("shared")
    names = []

    def work():
        names.extend(lane.child().name for _ in range(2_000))

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(work)
    assert len(set(names)) == 8_000


def test_hooks_are_installed_once_and_put_back_the_very_objects():
    was_installed = bool(lane_hooks._originals)
    lane_hooks.uninstall()
    try:
        start, submit = threading.Thread.start, ThreadPoolExecutor.submit
        create = asyncio.base_events.BaseEventLoop.create_task
        lane_hooks.install()
        lane_hooks.install()
        assert threading.Thread.start.__wrapped__ is start
        assert asyncio.base_events.BaseEventLoop.create_task.__wrapped__ is create
        lane_hooks.uninstall()
        assert threading.Thread.start is start
        assert ThreadPoolExecutor.submit is submit
        assert asyncio.base_events.BaseEventLoop.create_task is create
    finally:
        if was_installed:
            lane_hooks.install()


def test_a_task_with_a_context_of_its_own_is_the_callers_business(run):
    async def work():
        run.emit("x", "given")

    async def main():
        await asyncio.create_task(work(), context=contextvars.copy_context())

    fresh(lambda: asyncio.run(main()))
    assert lanes_of(run) == {"given": "root"}


def test_errors_of_jobs_tasks_and_threads_are_their_own(run):
    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result()

    async def main():
        with pytest.raises(ZeroDivisionError):
            await asyncio.create_task(fail())

    async def fail():
        return 1 / 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("taped", "expected"),
    [
        (["main"], ["main/w1", "main/p1", "main/w2"]),
        (["main", "main/p1", "main/w1"], ["main/w1", "main/p1", "main/w2"]),
        # Older tapes count workers together with other processes.
        (["main", "main/p1", "main/p2"], ["main/p1", "main/p2", "main/p3"]),
    ],
)
def test_workers_are_counted_as_the_recorder_of_the_tape_counted_them(taped, expected):
    lanes.know_processes(taped)
    try:
        here = lanes.Lane("main")
        assert [here.worker(), here.process(), here.worker()] == expected
    finally:
        lanes.know_processes([])
