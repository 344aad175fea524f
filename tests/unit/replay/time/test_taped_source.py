"""What a tape says of clock and entropy is believed as far as it makes sense."""

import gc
import threading

import hypothesis.strategies as st
import pytest
from hypothesis import given

from playhead.encoding.values import freeze
from playhead.event import Event
from playhead.recording import lanes
from playhead.recording.ambient import CLOCKS
from playhead.replay.time import virtual_time
from playhead.replay.time.taped_source import TapedSource

STARTED = 1_794_726_665_000_000_000
BOOTED = 5_000_000_000_000


def event(rows, *, after_ns=0):
    return Event(
        seq=1,
        kind="ambient",
        wall=STARTED + after_ns,
        mono=BOOTED + after_ns,
        pid=1,
        data={"readings": rows},
    )


def here():
    return here.__code__


PLACE = "time/test_taped_source.py here"


def source_of(*rows, **options):
    return TapedSource([event(list(rows), after_ns=7)], STARTED, **options)


def test_a_reading_is_served_once():
    source = source_of(["main", "time", PLACE, [5.0]])
    assert source.read("time", here.__code__, lambda: 9.0) == 5.0
    assert source.read("time", here.__code__, lambda: 9.0) != 5.0
    assert (source.served, source.missed) == (1, 1)


@pytest.mark.parametrize("value", [7.4e-05, 2**70, 1e300, [3, "ab", 1e-9]], ids=str)
def test_a_reading_that_json_cannot_hold_as_it_stands_is_served_like_any_other(value):
    source = source_of(["main", "random", PLACE, [0.5, freeze(value), 0.25]])
    read = [source.read("random", here.__code__, lambda: 9.0) for _ in range(3)]
    assert read == [0.5, value, 0.25]


def test_readings_of_one_place_that_came_in_several_events_follow_each_other():
    rows = [["main", "time_ns", PLACE, [n]] for n in (1, 2, 3)]
    source = TapedSource([event([row]) for row in rows], STARTED)
    assert [source.read("time_ns", here.__code__, lambda: 0) for _ in range(3)] == [1, 2, 3]


def test_what_is_made_up_lies_after_what_was_served():
    later = STARTED + 60 * 10**9
    source = source_of(["main", "time_ns", PLACE, [later]])
    assert source.read("time_ns", here.__code__, lambda: 0) == later
    made = [source.read("time_ns", here.__code__, lambda: 0) for _ in range(3)]
    assert later < made[0] < made[1] < made[2] < later + 10**9
    assert source.read("now", here.__code__, lambda: 0) >= made[2] // 1000


def test_durations_that_are_made_up_are_never_negative():
    source = source_of(["main", "monotonic", PLACE, [BOOTED / 1e9 + 50]])
    first = source.read("monotonic", here.__code__, lambda: 0.0)
    assert source.read("monotonic", here.__code__, lambda: 0.0) > first
    assert source.read("perf_counter_ns", here.__code__, lambda: 0) > first * 1e9


def test_the_wall_clock_follows_the_time_of_the_replay():
    source = source_of()
    source.time.sleep(3600)
    assert source.read("time_ns", here.__code__, lambda: 0) >= STARTED + 3600 * 10**9


def test_the_steady_clock_is_the_tape_s_own():
    source = source_of()
    assert abs(source.time.now_ns() - BOOTED) < 10**9


def test_a_wait_in_a_lane_that_is_further_than_the_clock_sees_the_time_move_on():
    source, lane = source_of(), lanes.Lane("ahead")
    virtual_time.begin(source.time)
    token = lanes.current.set(lane)
    try:
        lane.reach(source.time.now_ns() + 1_000_000_000)
        seen = [source.pass_by("monotonic", lambda: 1.0, waits=True) for _ in range(3)]
    finally:
        lanes.current.reset(token)
        virtual_time.end(source.time)
    assert lane.reached_ns / 1e9 < seen[0] < seen[1] < seen[2]


def test_who_waits_sees_real_time_until_waiting_is_hooked():
    source = source_of()
    assert source.pass_by("monotonic", lambda: 1.0, waits=True) == 1.0
    virtual_time.begin(source.time)
    try:
        assert source.pass_by("monotonic", lambda: 1.0, waits=True) == source.time.now_ns() / 1e9
        assert source.pass_by("process_time", lambda: 1.0, waits=True) == 1.0
        moving = source.pass_by("perf_counter_ns", lambda: 1, waits=False)
        assert moving >= source.time.now_ns()
    finally:
        virtual_time.end(source.time)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from(sorted(CLOCKS)),
)
def test_whatever_stands_on_the_tape_a_clock_gives_a_number(found, kind):
    for data in (found, [found], [["main", kind, PLACE, found]], [["main", kind, PLACE, [found]]]):
        source = TapedSource([event(data)], STARTED)
        value = source.read(kind, here.__code__, lambda: 1)
        assert type(value) in (int, float)


def test_bytes_that_are_not_on_the_tape_are_the_same_in_each_replay_and_differ_from_draw_to_draw():
    def draw(source):
        return [
            source.read("bytes 8", here.__code__, lambda: pytest.fail("real"), lambda d: d(8).hex())
            for _ in range(3)
        ]

    assert draw(source_of()) == draw(source_of())
    assert len(set(draw(source_of()))) == 3


def test_what_the_garbage_collector_runs_may_look_at_the_clock_too():
    """A `__del__` that logs does so, in the middle of another reading."""
    source = source_of()
    read = []

    def look(phase, _):
        if phase == "start" and len(read) < 5:
            read.append(source.read("time", here.__code__, lambda: 0.0))

    def collected(_):
        gc.collect()
        return b""

    reader = threading.Thread(
        target=lambda: source.read("bytes 1", here.__code__, lambda: b"", collected), daemon=True
    )
    gc.callbacks.append(look)
    try:
        reader.start()
        reader.join(10)
    finally:
        gc.callbacks.remove(look)
    assert read
    assert not reader.is_alive()
