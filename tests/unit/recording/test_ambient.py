"""What a program reads of clock and entropy is taped where it was read, and served there again."""

import asyncio
import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from playhead import clock
from playhead.encoding.readings import MOST_EXACT
from playhead.hooks.order import lane_hooks
from playhead.recording import ambient, lanes
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.ambient import TapingSource
from playhead.recording.deck import Call, Deck
from playhead.recording.recorder import Recorder
from playhead.replay.time.taped_source import TapedSource
from playhead.tape.reader import Tape

STARTED = 1_794_726_665_000_000_000


class World:
    """A recording with a clock that says 1, 2, 3, …"""

    def __init__(self, folder: Path) -> None:
        self.recorder = Recorder(run=folder, run_id="run", who="test")
        self.source = TapingSource(self.recorder)
        self.folder = folder
        self.numbers = count(1)
        self.read = ambient.wall_reader("time_ns", lambda: next(self.numbers))
        ambient.begin(self.source)

    def rows(self) -> list[list]:
        events = [event for event in Tape(self.folder).events() if event.kind == "ambient"]
        return [row for event in events for row in event.data["readings"]]

    def serve(self) -> TapedSource:
        """Stop recording; from here on readings are those of the tape."""
        ambient.end(self.source)
        self.recorder.close()
        tape = Tape(self.folder)
        events = [tape.whole(event) for event in tape.events() if event.kind == "ambient"]
        self.source = TapedSource(events, STARTED)
        ambient.begin(self.source)
        return self.source


@pytest.fixture
def world(tmp_path):
    lane_hooks.install()
    made = World(tmp_path)
    with lanes.lane("main"):
        yield made
    ambient.end(made.source)
    made.recorder.close()
    lane_hooks.uninstall()


def test_without_a_recording_the_clock_is_the_world_s():
    assert ambient.source() is None
    assert ambient.wall_reader("time", lambda: 5.0)() == 5.0
    assert ambient.read("seed", lambda: "abc") == "abc"


def test_a_reading_is_known_by_lane_kind_and_function(world):
    world.read()
    world.source.flush()
    place = "recording/test_ambient.py test_a_reading_is_known_by_lane_kind_and_function"
    assert world.rows() == [["main", "time_ns", place, [1]]]


def test_readings_come_back_in_their_order(world):
    then = [world.read() for _ in range(5)]
    world.serve()
    assert [world.read() for _ in range(5)] == then


def test_a_reading_that_is_not_repeated_does_not_shift_the_others(world):
    def library():
        return world.read()

    def program():
        return world.read()

    then = [(library(), program()) for _ in range(3)]
    world.serve()
    assert [program() for _ in range(3)] == [pair[1] for pair in then]


def test_each_thread_gets_its_own_again_whoever_is_first(world):
    def once(barrier, into, name):
        barrier.wait()
        into[name] = [world.read() for _ in range(3)]

    def both(order):
        into, barrier = {}, threading.Barrier(2)
        threads = {n: threading.Thread(target=once, args=(barrier, into, n)) for n in order}
        with lanes.lane("main"):
            for name in sorted(order):
                threads[name].start()
            for thread in threads.values():
                thread.join()
        return into

    then = both("ab")
    world.serve()
    assert both("ba") == then


def test_each_job_of_a_pool_gets_its_own_again_however_the_workers_are_chosen(world):
    def jobs(workers):
        gates = [threading.Event() for _ in range(4)]

        def job(number):
            if workers == 4:
                gates[number].wait()
                gates[number - 1].set()
            return world.read()

        with lanes.lane("main"), ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(job, number) for number in range(4)]
            gates[3].set()  # with four workers the last job reads first
            return [future.result() for future in futures]

    then = jobs(4)
    assert then == [4, 3, 2, 1]
    world.serve()
    assert jobs(1) == then


def test_each_task_gets_its_own_again(world):
    async def all_of(order):
        turns = [asyncio.Event() for _ in range(3)]

        async def task(number):
            await turns[number].wait()
            return world.read()

        tasks = [asyncio.ensure_future(task(number)) for number in range(3)]
        for number in order:
            turns[number].set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return await asyncio.gather(*tasks)

    with lanes.lane("main"):
        then = asyncio.run(all_of([2, 0, 1]))
    assert then == [2, 3, 1]
    world.serve()
    with lanes.lane("main"):
        assert asyncio.run(all_of([0, 1, 2])) == then


def test_what_was_read_is_on_the_tape_before_the_call_that_follows(world):
    world.read()
    world.read()
    with lanes.lane("main"):
        Deck(world.recorder).perform(
            Call(boundary="tool", name="look"), FunctionAdapter(lambda: None)
        )
    kinds = [event.kind for event in Tape(world.folder).events()]
    assert "ambient" in kinds[: kinds.index("call")]
    assert sum(len(row[3]) for row in world.rows()) == 2


def test_the_first_reading_after_a_pause_is_on_the_tape_at_once(world):
    world.read()
    assert len(world.rows()) == 1


def test_what_waits_is_written_when_the_run_ends(world):
    then = [world.read() for _ in range(3)]
    world.recorder.close()
    assert [value for row in world.rows() for value in row[3]] == then


def test_a_loop_that_looks_at_the_clock_fills_a_bounded_piece_of_tape(world, monkeypatch):
    # Two microseconds a reading on every machine: a loop on a busy one is slow enough to be kept exactly.
    monkeypatch.setattr(clock, "mono_ns", count(clock.mono_ns(), 2_000).__next__)
    before = world.recorder.bytes_written
    for _ in range(20 * MOST_EXACT):
        world.read()
    world.source.flush()
    assert world.recorder.bytes_written - before < 100_000


def test_a_forked_child_writes_what_it_read_and_not_what_its_parent_did(world):
    then = [world.read() for _ in range(3)]
    child = os.fork()
    if not child:
        world.read()
        world.recorder.close()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    world.source.flush()
    by_segment = {}
    for event in Tape(world.folder).events():
        if event.kind == "ambient":
            values = [value for row in event.data["readings"] for value in row[3]]
            by_segment.setdefault(event.segment, []).extend(values)
    assert by_segment == {str(os.getpid()): then, str(child): [4]}


def test_a_builtin_in_a_class_body_still_is_no_method(world):
    class Clock:
        now = world.read

    assert Clock().now() == 1


def code_in(file):
    """A function that calls what it is given, and lies in `file`."""
    names: dict = {}
    exec(compile("def call(read): return read()", file, "exec"), names)
    return names["call"]


def test_what_the_standard_library_reads_is_the_reading_of_who_called_it(world):
    code_in(logging.__file__)(world.read)
    world.source.flush()
    place = "test_what_the_standard_library_reads_is_the_reading_of_who_called_it"
    assert [row[2] for row in world.rows()] == [f"recording/test_ambient.py {place}"]


def test_readings_come_back_as_they_were_whatever_they_stand_beside(world):
    clocks = [1.5, 1794766264.828362, 26974893074336, 0, 0.0, -1.0, 1e-9, 1e300, 2**70, 2.5]
    kinds = ("time", "os.urandom", "perf_counter_ns")

    def ask(readings):
        got = []
        for number in range(1, len(readings) + 1):
            for at in range(number):
                reading = readings[at]
                got.append(ambient.read(kinds[at % 3], lambda reading=reading: reading))
            world.source.flush()
        return got

    then = ask([*clocks, "9f86d0", *clocks])
    world.serve()
    now = ask([None] * (2 * len(clocks) + 1))
    assert [repr(one) for one in now] == [repr(one) for one in then]


def test_a_duration_that_a_program_measures_is_taped(world):
    ambient.steady_reader("monotonic", lambda: 1.0)()
    world.source.flush()
    assert [row[1] for row in world.rows()] == ["monotonic"]


@pytest.mark.parametrize(
    "file",
    [
        threading.__file__,
        "/x/site-packages/trio/_core/_run.py",
        "/x/site-packages/httpcore/_sync/http11.py",
    ],
)
def test_a_steady_clock_read_by_what_waits_is_not_taped(world, file):
    assert code_in(file)(ambient.steady_reader("monotonic", lambda: 1.0)) == 1.0
    world.source.flush()
    assert world.rows() == []


def test_something_that_a_process_has_one_of_is_found_from_any_lane(world):
    code = test_something_that_a_process_has_one_of_is_found_from_any_lane.__code__
    with lanes.lane("first"):
        then = ambient.read_once("generator", code, lambda: "seed-1")
    world.serve()
    with lanes.lane("second"):
        assert ambient.read_once("generator", code, lambda: "another") == then


def test_readings_stay_in_order_although_two_threads_write_them(tmp_path):
    class Slow(Recorder):
        """While the first readings are on their way to the tape, another thread brings the next."""

        meanwhile = None

        def append(self, entry):
            meanwhile, self.meanwhile = self.meanwhile, None
            if entry.kind == "ambient" and meanwhile is not None:
                thread = threading.Thread(target=meanwhile)
                thread.start()
                thread.join()
            return super().append(entry)

    recorder = Slow(run=tmp_path, run_id="r", who="test")
    source = TapingSource(recorder)

    def read(value):
        source.log.append((lanes.MAIN, "random", read.__code__, value))
        source.flush()

    recorder.meanwhile = lambda: read(2.0)
    read(1.0)
    read(3.0)
    recorder.close()
    rows = [
        row
        for one in Tape(tmp_path).events()
        if one.kind == "ambient"
        for row in one.data["readings"]
    ]
    assert [value for *_, values in rows for value in values] == [1.0, 2.0, 3.0]
