"""The extension that notes locks behaves as Python's own locks do, and says who took them."""

import os
import threading
import weakref

import pytest

from playhead.host import native_core
from playhead.launch import native_build


@pytest.fixture(scope="module")
def native():
    if native_core.refusal() is not None:
        pytest.skip(str(native_core.refusal()))
    assert native_build.prepare(os.environ), "the tests need a C compiler and the headers of Python"
    native_core.forget()
    module = native_core.extension()
    yield module
    module.watch(None)
    module.own(None)


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_a_noted_lock_is_a_lock(native, kind):
    lock = getattr(native, kind)()
    assert weakref.ref(lock)() is lock
    assert repr(lock).startswith("<unlocked _thread.")
    with lock:
        assert repr(lock).startswith("<locked _thread.")
        seen = []
        other = threading.Thread(
            target=lambda: seen.extend([lock.acquire(blocking=False), lock.acquire(timeout=0.001)])
        )
        other.start()
        other.join()
        assert seen == [False, False]
    with pytest.raises(RuntimeError):
        lock.release()
    for wrong in ({"blocking": False, "timeout": 1}, {"timeout": -2}):
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(**wrong)
    with pytest.raises(OverflowError):
        lock.acquire(timeout=threading.TIMEOUT_MAX + 1)


def test_an_rlock_is_taken_again_by_its_thread_and_serves_a_condition(native):
    lock = native.RLock()
    with lock, lock:
        assert lock._is_owned()
    condition = threading.Condition(lock)
    waits = threading.Event()

    def wait():
        with condition, condition:
            waits.set()
            condition.wait()

    waiter = threading.Thread(target=wait)
    waiter.start()
    waits.wait()
    with condition:
        condition.notify()
    waiter.join(10)
    assert not waiter.is_alive()


def test_only_a_change_of_lanes_is_noted(native):
    noted = []
    native.watch(lambda *one: noted.append(one))
    lock = native.Lock()
    lock.playhead_name = "main#1"

    def take(lane, times):
        native.own(lane)
        for _ in range(times):
            with lock:
                pass

    for lane, times in (("a", 3), ("b", 1), ("a", 2), (None, 4), ("a", 1), ("b", 1)):
        thread = threading.Thread(target=take, args=(lane, times))
        thread.start()
        thread.join()
    # What a thread takes for no lane is not counted.
    assert noted == [("main#1", 1, "a"), ("main#1", 4, "b"), ("main#1", 5, "a"), ("main#1", 8, "b")]


def test_a_watcher_that_fails_does_not_reach_the_program(native):
    native.watch(lambda *_: 1 / 0)
    lock = native.Lock()
    lock.playhead_name = "main#1"
    native.own("a")
    with lock:
        assert lock.locked()
    native.own(None)
