"""Readings go onto the tape as steps and come back to the last bit; a spinning loop fills no tape."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from playhead.encoding.readings import MOST_EXACT, ReadingRun, pack, unpack

NS_OF_A_CLOCK = st.integers(min_value=0, max_value=2**62)


def on_tape(values):
    """As they come back: through JSON, as a tape does it."""
    return list(unpack(json.loads(json.dumps(pack(values)))))


@given(st.lists(NS_OF_A_CLOCK))
def test_integers_come_back(values):
    assert on_tape(values) == values


@given(st.lists(NS_OF_A_CLOCK.map(lambda ns: ns / 1e9)))
def test_seconds_come_back_to_the_last_bit(values):
    assert on_tape(values) == values


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_that_no_clock_gives_come_back_too(values):
    assert on_tape(values) == values


@given(st.lists(st.text()))
def test_texts_come_back(values):
    assert on_tape(values) == values


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False), st.text(), st.booleans())))
def test_a_mix_comes_back_with_its_types(values):
    # Infinity stands for what a host might put there; JSON as Python writes it keeps it.
    back = on_tape(values)
    assert back == values
    assert list(map(type, back)) == list(map(type, values))


def test_seconds_that_follow_each_other_take_few_bytes():
    values = [(1_794_726_665_000_000_000 + n * 700) / 1e9 for n in range(1000)]
    assert len(json.dumps(pack(values))) < 6 * len(values)


def run_of(values, **options):
    run = ReadingRun(is_clock=True, **options)
    for start in range(0, len(values), 1000):
        run.add(values[start : start + 1000])
    return run


def test_a_run_that_is_not_long_keeps_every_reading():
    values = [n * 1000 for n in range(MOST_EXACT)]
    assert list(unpack(run_of(values).packed())) == values


def test_a_loop_that_spins_is_a_line_between_its_ends():
    values = [n * 300 + n % 7 for n in range(200_000)]
    run = run_of(values)
    packed = run.packed()
    back = list(unpack(packed))
    assert run.count == len(back) == len(values)
    assert back[:MOST_EXACT] == values[:MOST_EXACT]
    assert back[-2:] == values[-2:]
    assert len(json.dumps(packed)) < 60_000


def test_a_loop_that_waits_for_a_moment_ends_at_the_same_turn():
    values = [(n * 300 + n % 7) / 1e9 for n in range(50_000)]
    deadline = values[-1]
    back = list(unpack(run_of(values).packed()))
    assert next(i for i, one in enumerate(back) if one >= deadline) == len(values) - 1


def test_time_never_runs_back_along_the_line():
    values = [n * 300 for n in range(30_000)]
    back = list(unpack(run_of(values).packed()))
    assert back == sorted(back)


def test_a_place_that_spun_before_keeps_next_to_nothing():
    values = [n * 300 for n in range(100_000)]
    assert len(json.dumps(run_of(values, spins=True).packed())) < 250


def test_what_is_no_clock_is_kept_whole_however_much_it_is():
    run = ReadingRun(is_clock=False)
    run.add([f"{n:08x}" for n in range(3 * MOST_EXACT)])
    assert len(list(unpack(run.packed()))) == 3 * MOST_EXACT


def test_clocks_that_give_no_numbers_lose_their_middle_and_nothing_breaks():
    run = run_of([math.inf] * (MOST_EXACT + 10))
    assert set(unpack(run.packed())) == {math.inf}


def test_what_a_stranger_wrote_on_the_tape_is_passed_over():
    strange = [
        {"nothing": 1},
        {"ns": "x"},
        {"int": ["a"]},
        {"between": [1]},
        {"between": ["a", 2, 3]},
    ]
    assert list(unpack([*strange, 5])) == [5]
