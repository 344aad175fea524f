"""Ways in which a program waits, each with what must be true of it in a replay. Run as a program, under
every Python: `python checks.py SRC` prints what became of each check.

A check waits for minutes and hours. That it does not really do so is the first thing it proves: all
of them together must end within the time that is given to one test.
"""

import asyncio
import concurrent.futures
import json
import queue
import sched
import select
import selectors
import socket
import subprocess
import sys
import threading
import time
import traceback
from contextlib import contextmanager

HOUR = 3600.0
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def after(seconds, function):
    def later():
        time.sleep(seconds)
        function()

    return in_thread(later)


@contextmanager
def lasts(at_least, below=None):
    from playhead.replay.time import virtual_time

    before = virtual_time.active().now_ns()
    yield
    passed = (virtual_time.active().now_ns() - before) / 1e9
    assert at_least <= passed < (below or at_least + 5), passed


@check
def an_event_times_out():
    with lasts(HOUR):
        assert threading.Event().wait(HOUR) is False


@check
def an_event_that_is_set_later_is_heard():
    event = threading.Event()
    after(600, event.set)
    with lasts(600):
        assert event.wait(HOUR) is True


@check
def an_event_without_a_timeout_is_heard():
    event = threading.Event()
    after(600, event.set)
    with lasts(600):
        assert event.wait() is True


@check
def a_condition_times_out():
    condition = threading.Condition()
    with condition, lasts(HOUR):
        assert condition.wait_for(lambda: False, HOUR) is False


@check
def a_queue_times_out():
    with lasts(HOUR):
        try:
            queue.Queue().get(timeout=HOUR)
        except queue.Empty:
            return
    raise AssertionError("nothing was in it")


@check
def a_queue_gives_what_comes_later():
    items = queue.Queue()
    after(600, lambda: items.put("x"))
    with lasts(600):
        assert items.get(timeout=HOUR) == "x"


@check
def a_full_queue_times_out():
    items = queue.Queue(1)
    items.put(1)
    with lasts(HOUR):
        try:
            items.put(2, timeout=HOUR)
        except queue.Full:
            return
    raise AssertionError("it was full")


@check
def a_simple_queue_times_out_and_gives():
    items = queue.SimpleQueue()
    with lasts(HOUR):
        try:
            items.get(timeout=HOUR)
        except queue.Empty:
            items.put("x")
    assert items.get() == "x"
    after(600, lambda: items.put("y"))
    with lasts(600):
        assert items.get(timeout=HOUR) == "y"


@check
def a_simple_queue_refuses_what_it_refused():
    items = queue.SimpleQueue()
    for call in (lambda: items.get(False), items.get_nowait):
        try:
            call()
        except queue.Empty:
            continue
        raise AssertionError("it is empty")
    try:
        items.get(timeout=-1)
    except ValueError:
        return
    raise AssertionError("no time is negative")


@check
def a_lock_times_out_and_is_taken_when_it_is_free():
    lock = threading.Lock()
    assert lock.acquire(timeout=HOUR)
    with lasts(HOUR):
        assert lock.acquire(timeout=HOUR) is False
    assert lock.acquire(blocking=False) is False
    after(600, lock.release)
    with lasts(600):
        assert lock.acquire(timeout=HOUR) is True


@check
def a_lock_refuses_what_it_refused():
    lock = threading.Lock()
    lock.acquire()
    for wrong in ({"blocking": False, "timeout": 1}, {"timeout": -5}):
        try:
            lock.acquire(**wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)


@check
def a_lock_that_belongs_to_a_thread_times_out_for_others():
    lock = threading.RLock()
    with lock, lock, lasts(HOUR):
        got = []
        in_thread(lambda: got.append(lock.acquire(timeout=HOUR))).join()
        assert got == [False]


@check
def who_sleeps_with_a_lock_lets_the_next_one_have_it():
    lock, order = threading.Lock(), []

    def limited(number):
        time.sleep(number)
        with lock:
            time.sleep(100)
            order.append(number)

    with lasts(300):
        for thread in [in_thread(limited, number) for number in (1, 2, 3)]:
            thread.join()
    # Two threads wait for the lock when the first one lets go of it: without a tape either may be next.
    assert order[0] == 1
    assert sorted(order) == [1, 2, 3]


@check
def a_semaphore_and_a_barrier_time_out():
    with lasts(2 * HOUR):
        assert threading.Semaphore(0).acquire(timeout=HOUR) is False
        try:
            threading.Barrier(2).wait(HOUR)
        except threading.BrokenBarrierError:
            return
    raise AssertionError("nobody else came")


@check
def a_join_times_out_and_ends():
    thread = in_thread(time.sleep, HOUR)
    with lasts(600):
        thread.join(600)
    assert thread.is_alive()
    with lasts(HOUR - 600):
        thread.join()
    assert not thread.is_alive()


@check
def a_timer_fires():
    fired = threading.Event()
    threading.Timer(HOUR, fired.set).start()
    with lasts(HOUR):
        assert fired.wait(2 * HOUR)


@check
def a_cancelled_timer_does_not():
    fired = threading.Event()
    timer = threading.Timer(HOUR, fired.set)
    timer.start()
    timer.cancel()
    assert fired.wait(2 * HOUR) is False


@check
def a_future_times_out_and_comes():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(time.sleep, HOUR)
        with lasts(600):
            try:
                future.result(timeout=600)
            except concurrent.futures.TimeoutError:
                pass
            else:
                raise AssertionError("it was not done")
        with lasts(HOUR - 600):
            future.result()


@check
def futures_come_in_the_order_of_their_moments():
    def job(seconds):
        time.sleep(seconds)
        return seconds

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(job, seconds) for seconds in (300, 100, 200)]
        found = [one.result() for one in concurrent.futures.as_completed(futures, timeout=HOUR)]
    assert found == [100, 200, 300]


@check
def a_timeout_does_not_fire_over_a_job_that_computes():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: sum(range(3 * 10**6)))
        with lasts(0):
            assert future.result(timeout=1e-4)


@check
def a_loop_sleeps_and_ticks_in_order():
    async def main():
        said = []

        async def tick():
            for number in range(4):
                await asyncio.sleep(100)
                said.append(number)

        async def slow():
            await asyncio.sleep(250)
            said.append("slow")

        await asyncio.gather(tick(), slow())
        return said

    with lasts(400):
        assert asyncio.run(main()) == [0, 1, "slow", 2, 3]


@check
def a_task_times_out():
    async def main():
        try:
            await asyncio.wait_for(asyncio.sleep(HOUR), 60)
        except asyncio.TimeoutError:
            return True

    with lasts(60):
        assert asyncio.run(main())


@check
def a_timeout_does_not_fire_over_a_thread():
    async def main():
        await asyncio.wait_for(asyncio.to_thread(time.sleep, 50), 1000)
        return await asyncio.wait_for(asyncio.to_thread(sum, range(3 * 10**6)), 1e-4)

    with lasts(50):
        assert asyncio.run(main())


@check
def a_timeout_does_not_fire_over_a_child():
    async def main():
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "sum(range(10**6)); print(5)", stdout=subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(child.communicate(), 1e-3)
        return out

    with lasts(0):
        assert asyncio.run(main()) == b"5\n"


@check
def a_call_comes_later():
    async def main():
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_at(loop.time() + HOUR, future.set_result, "now")
        return await future

    with lasts(HOUR):
        assert asyncio.run(main()) == "now"


@check
def two_loops_in_two_threads_share_one_time():
    woken = []

    async def sleep(seconds):
        await asyncio.sleep(seconds)
        woken.append(seconds)

    with lasts(200):
        thread = in_thread(lambda: asyncio.run(sleep(200)))
        asyncio.run(sleep(100))
        thread.join()
    assert woken == [100, 200]


@check
def a_thread_calls_into_a_loop():
    async def main():
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        after(600, lambda: loop.call_soon_threadsafe(heard.set))
        await asyncio.wait_for(heard.wait(), HOUR)
        return True

    with lasts(600):
        assert asyncio.run(main())


@check
def descriptors_time_out_and_come():
    ours, theirs = socket.socketpair()
    with ours, theirs, selectors.DefaultSelector() as selector:
        selector.register(ours, selectors.EVENT_READ)
        epoll, poll = select.epoll(), select.poll()
        epoll.register(ours.fileno(), select.EPOLLIN)
        poll.register(ours, select.POLLIN)
        with lasts(4 * HOUR):
            assert selector.select(HOUR) == []
            assert select.select([ours], [], [], HOUR) == ([], [], [])
            assert poll.poll(HOUR * 1000) == []
            assert epoll.poll(HOUR) == []
        after(600, lambda: theirs.send(b"x"))
        with lasts(600):
            assert selector.select(HOUR)
        assert select.select([ours], [], [], HOUR)[0] == [ours]
        assert poll.poll(HOUR * 1000)
        assert epoll.poll(HOUR)
        epoll.close()


@check
def a_process_times_out():
    child = subprocess.Popen(["sleep", "100000"])
    with lasts(HOUR):
        try:
            child.wait(HOUR)
        except subprocess.TimeoutExpired:
            pass
        else:
            raise AssertionError("it was asleep")
    child.kill()
    child.wait()


@check
def a_process_that_talks_times_out_too():
    with lasts(HOUR):
        try:
            subprocess.run(["sleep", "100000"], timeout=HOUR, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return
    raise AssertionError("it was asleep")


@check
def a_process_that_ends_does_not():
    program = [sys.executable, "-c", "sum(range(10**6))"]
    with lasts(0):
        assert subprocess.run(program, timeout=0.001, check=False).returncode == 0


@check
def a_scheduler_keeps_its_order():
    said = []
    chosen = sched.scheduler()
    chosen.enter(HOUR, 1, said.append, ("late",))
    chosen.enter(60, 1, said.append, ("early",))
    with lasts(HOUR):
        chosen.run()
    assert said == ["early", "late"]


@check
def sleeping_refuses_what_it_refused():
    for wrong, error in ((-1, ValueError), ("x", TypeError)):
        try:
            time.sleep(wrong)
        except error:
            continue
        raise AssertionError(wrong)
    with lasts(0):
        time.sleep(0)


@check
def an_interrupt_ends_a_sleep():
    import signal

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    signal.signal(signal.SIGUSR1, ring)
    lock = threading.Lock()
    lock.acquire()
    main = threading.get_ident()
    after(600, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    try:
        lock.acquire()
    except Alarm:
        return
    raise AssertionError("it was interrupted")


def hooks():
    """As a replay installs them."""
    from playhead.hooks import registry
    from playhead.recording import ambient, deck
    from playhead.replay.time import virtual_time
    from playhead.replay.time.taped_source import TapedSource

    class Nothing:
        mode = "replay"
        intercepts = True
        live = ()

        class recorder:  # noqa: N801
            append = staticmethod(lambda *_, **__: None)

    source = TapedSource([], 1_794_726_665_000_000_000)
    ambient.begin(source)
    virtual_time.begin(source.time)
    kept = ("ambient.clock_reads:hook_time", "order.event_loops:hook_uvloop")
    registry.ROWS = tuple(row for row in registry.ROWS if row.hook in kept)
    deck.activate(Nothing)
    registry.install()
    return registry.uninstall


def main():
    sys.path.insert(0, sys.argv[1])
    locks = [type(threading.Lock()).acquire, type(threading.RLock()).acquire, time.sleep]
    uninstall = hooks()
    became = {}
    for name, function in CHECKS.items():
        try:
            function()
            became[name] = "ok"
        except BaseException:
            became[name] = traceback.format_exc()
    uninstall()
    after = [type(threading.Lock()).acquire, type(threading.RLock()).acquire, time.sleep]
    became["what_was_there_is_put_back"] = "ok" if after == locks else str(after)
    print(json.dumps(became))


if __name__ == "__main__":
    main()
