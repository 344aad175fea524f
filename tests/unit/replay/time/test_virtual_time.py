"""Time stands still while anybody works, and jumps when everybody waits."""

import os
import subprocess
import sys
import threading
from itertools import count

import pytest

from playhead import clock
from playhead.recording import lanes, pacing
from playhead.replay.time import virtual_time
from playhead.replay.time.outside_activity import OutsideActivity
from playhead.replay.time.virtual_time import VirtualTime

HOUR_NS = 3600 * 10**9
BEGAN = 5 * 10**12


@pytest.fixture(autouse=True)
def at_the_start():
    """Another test of this process may have left the main lane at the time of its tape."""
    lanes.MAIN.restart()


@pytest.fixture
def time():
    made = VirtualTime(began_ns=BEGAN)
    virtual_time.begin(made)
    yield made
    virtual_time.end(made)


def really(function, *args):
    """What it gave, and how long it really took."""
    began = clock.mono_ns()
    return function(*args), clock.mono_ns() - began


def never(_seconds):
    return False


def always():
    return True


def test_eight_hours_of_sleep_cost_nothing(time):
    def night():
        for _ in range(8 * 60):
            time.sleep(60)

    _, took = really(night)
    assert 8 * HOUR_NS <= time.now_ns() - BEGAN < 8 * HOUR_NS + 10**9
    assert took < 60 * 10**9


def test_time_stands_still_while_nobody_sleeps(time):
    before = time.now_ns()
    sum(range(10**6))
    assert time.now_ns() == before


def test_who_waits_by_looking_at_the_clock_sees_it_move(time):
    seen = {time.moving_ns() for _ in range(100)}
    assert len(seen) > 1
    time.sleep(100)
    assert time.moving_ns() >= max(max(seen), time.now_ns())


def test_sleepers_wake_in_the_order_of_their_moments(time):
    woken = []

    def sleeper(seconds):
        time.sleep(seconds)
        woken.append(seconds)

    threads = [threading.Thread(target=sleeper, args=(n,)) for n in (3000, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert woken == [1000, 2000, 3000]


def test_sleepers_do_not_take_their_own_looking_around_for_somebody_at_work(time):
    hears, tells = os.pipe()
    stranger = threading.Thread(target=os.read, args=(hears, 1))
    stranger.start()
    children = [subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(5)]
    sleepers = [threading.Thread(target=time.sleep, args=(15 + n,)) for n in range(2)]
    for sleeper in sleepers:
        sleeper.start()
    # The main thread sleeps as well: `join` is not hooked here, so it would be one more stranger to watch.
    time.sleep(17)
    for sleeper in sleepers:
        sleeper.join()
    for child in children:
        child.communicate()
    os.write(tells, b"!")
    stranger.join()
    os.close(hears)
    os.close(tells)
    # Who waits in vain for the others to be idle gives up without time having moved.
    assert time.now_ns() >= BEGAN + 17 * 10**9


def test_a_timeout_fires_when_nobody_is_left_who_could_prevent_it(time):
    assert time.wait(30, never, always) is False
    assert time.now_ns() >= BEGAN + 30 * 10**9


def test_what_has_come_is_taken_even_if_its_time_is_over(time):
    came = iter([False, True])
    assert time.wait(0.001, lambda _: next(came, True), always) is True


def test_a_timeout_does_not_fire_while_another_thread_works(time):
    lock, working = threading.Lock(), threading.Event()
    lock.acquire()

    def work():
        working.set()
        total = 0
        for number in range(2 * 10**6):
            total += number
        lock.release()

    thread = threading.Thread(target=work)
    thread.start()
    working.wait()
    came = time.wait(1e-6, lambda s: lock.acquire(timeout=s or 0), lock.locked)
    thread.join()
    assert came is True
    assert time.now_ns() == BEGAN


def test_a_timeout_does_not_fire_while_a_child_runs(time):
    child = subprocess.Popen([sys.executable, "-c", "sum(range(10**7))"])
    came = time.wait(1e-6, lambda _: child.poll() is not None, lambda: child.poll() is None)
    assert came is True
    assert time.now_ns() == BEGAN


def at_the_try(number):
    """An attempt that has come at its n-th try; what is tried meanwhile takes no time."""
    tries = count(1)
    return lambda _seconds: next(tries) >= number


def test_who_was_woken_is_not_taken_for_one_who_waits(time):
    waits, awake = threading.Event(), threading.Event()

    def sleeper():
        # Woken, says `is_stuck`; but it has had no time to notice.
        time.wait(None, lambda _: waits.set() or awake.wait(), lambda: False)

    thread = threading.Thread(target=sleeper)
    thread.start()
    waits.wait()
    came = time.wait(5, at_the_try(100), always)
    awake.set()
    thread.join()
    assert came is True
    assert time.now_ns() == BEGAN


def test_a_wait_inside_a_wait_is_real(time):
    def attempt(_seconds):
        assert time.wait(0.001, never, always) is False
        return True

    assert time.wait(HOUR_NS, attempt, always) is True
    assert time.now_ns() == BEGAN


def test_at_pace_everything_takes_as_long_as_it_took():
    time = VirtualTime(began_ns=BEGAN, pace=True)
    before = time.now_ns()
    _, took = really(time.sleep, 0.01)
    assert took >= 10**7
    assert time.now_ns() - before >= 10**7
    _, took = really(time.rest, 10**7)
    assert took >= 10**7


def test_with_the_first_live_call_time_is_real_and_taped_answers_come_at_once(time):
    pacing.go_live("llm")
    before = time.now_ns()
    _, took = really(time.sleep, 0.01)
    assert took >= 10**7
    assert time.now_ns() - before >= 10**7
    _, took = really(pacing.rest, HOUR_NS)
    assert took < HOUR_NS / 100


@pytest.mark.parametrize("boundary", ["tool", "state"])
def test_a_live_call_that_stays_inside_the_program_does_not_make_time_real(time, boundary):
    pacing.go_live(boundary)
    assert not time.is_real


def test_an_answer_from_the_tape_waits_for_nobody_for_long(time):
    working, stop = threading.Event(), threading.Event()

    def spin():
        working.set()
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=spin)
    thread.start()
    working.wait()
    _, took = really(pacing.rest, HOUR_NS)
    stop.set()
    thread.join()
    assert took < HOUR_NS / 100


def test_heartbeats_are_not_played_at_full_speed_for_ever(time):
    assert time.wait(8 * 24 * 3600, at_the_try(100), always) is True
    assert time.now_ns() == BEGAN


def test_a_run_that_was_killed_while_it_waited_ends_in_that_wait():
    ended = []

    class Killed(BaseException):
        pass

    def die():
        ended.append(True)
        raise Killed

    time = VirtualTime(began_ns=BEGAN, end_ns=BEGAN + 10 * 10**9, on_end=die)
    time.sleep(5)
    with pytest.raises(Killed):
        time.sleep(3600)
    assert ended == [True]


def test_a_forked_child_does_not_wait_for_the_threads_of_its_parent(time):
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait)
    thread.start()
    child = os.fork()
    if not child:
        time.sleep(3600)
        os._exit(0 if time.now_ns() >= BEGAN + HOUR_NS else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.set()
    thread.join()


class TestStrangers:
    def test_a_thread_that_never_moves_is_idle_after_a_while(self):
        strangers, reader = OutsideActivity(), threading.Event()
        read, write = os.pipe()

        def listen():
            reader.set()
            os.read(read, 1)

        thread = threading.Thread(target=listen)
        thread.start()
        reader.wait()
        try:
            assert not self._idle(strangers, thread)
            while not self._idle(strangers, thread):
                clock.sleep(0.01)
            assert self._idle(strangers, thread), "and stays so, at no further cost"
        finally:
            os.write(write, b"x")
            thread.join()
            os.close(read)
            os.close(write)

    def test_a_thread_that_computes_is_not(self):
        strangers, stop, working = OutsideActivity(), threading.Event(), threading.Event()

        def compute():
            working.set()
            while not stop.is_set():
                sum(range(10_000))

        thread = threading.Thread(target=compute)
        thread.start()
        working.wait()
        until = clock.mono_ns() + 1_300_000_000
        seen = []
        while clock.mono_ns() < until:
            seen.append(self._idle(strangers, thread))
            clock.sleep(0.01)
        stop.set()
        thread.join()
        assert not any(seen)

    def test_without_children_nobody_is_waited_for(self):
        # In a process of its own: this one has children of whichever tests came before.
        told = "from playhead.replay.time.outside_activity import OutsideActivity as A; assert A().children_are_idle()"
        subprocess.run([sys.executable, "-c", told], check=True)

    def test_a_stand_in_that_waits_for_the_program_is_soon_idle(self):
        child = subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE)
        strangers = OutsideActivity(lambda pid: pid == child.pid)
        began = clock.mono_ns()
        while not strangers.children_are_idle():
            clock.sleep(0.001)
        assert clock.mono_ns() - began < 60 * 10**9
        child.communicate()

    def _idle(self, strangers, thread):
        return strangers.is_idle(thread.ident, sys._current_frames()[thread.ident])
