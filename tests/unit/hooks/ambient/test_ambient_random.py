"""Pseudo-random numbers are the same again: unseeded, seeded, shared by lanes, and numpy's."""

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy.random
import pytest

from playhead.hooks.ambient.entropy_reads import hook_os
from playhead.hooks.ambient.random_draws import hook_numpy, hook_random
from playhead.recording import lanes


@pytest.fixture
def twice(twice_with):
    return twice_with((hook_os, os), (hook_random, random), (hook_numpy, numpy.random))


def shuffled():
    items = list(range(50))
    random.shuffle(items)
    return items


def reseeded():
    random.seed()
    return random.random()


DRAWS = {
    "random": lambda: random.random(),
    "randint": lambda: random.randint(0, 10**9),
    "choice": lambda: random.choice(range(10**6)),
    "choices": lambda: random.choices("abcdef", k=8),
    "sample": lambda: random.sample(range(1000), 5),
    "shuffle": shuffled,
    "gauss": lambda: random.gauss(0, 1),
    "randbytes": lambda: random.randbytes(7),
    "getrandbits": lambda: random.getrandbits(100),
    "seed()": reseeded,
    "Random()": lambda: random.Random().random(),
    "numpy's old generator": lambda: numpy.random.rand(3).tolist(),
    "numpy's new generator": lambda: numpy.random.default_rng().integers(10**9),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_what_was_drawn_is_drawn_again(twice, draw):
    then, now = twice(lambda: [draw() for _ in range(5)])
    assert now == then


def test_a_seed_that_the_program_set_before_the_recording_is_left_alone(twice):
    random.seed(42)
    numpy.random.seed(42)
    expected = [random.Random(42).random(), numpy.random.RandomState(42).rand()]
    then, now = twice(lambda: [random.random(), numpy.random.rand()])
    assert then == now == expected


def test_a_seed_that_the_program_sets_counts(twice):
    def program():
        random.seed(7)
        return random.random(), random.Random(8).random()

    then, now = twice(program)
    assert then == now == (random.Random(7).random(), random.Random(8).random())


def test_one_lane_that_draws_alone_tapes_no_numbers(twice):
    twice(lambda: [random.random() for _ in range(10_000)])
    assert not twice.kinds() & {"random", "alone"}


def drawn_by_jobs(workers):
    """Four jobs that draw from the shared generator; with four workers the last one draws first."""
    gates = [threading.Event() for _ in range(4)]

    def job(number):
        if workers == 4:
            gates[number].wait()
            gates[number - 1].set()
        return random.random(), random.gauss(0, 1), random.randint(0, 10**6), random.gauss(0, 1)

    with lanes.lane("main"):
        before = [random.random() for _ in range(3)]
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(job, number) for number in range(4)]
            gates[3].set()
            jobs = [future.result() for future in futures]
        return before, jobs, random.random()


def test_lanes_that_share_the_generator_get_their_own_numbers_again(twice):
    then, now = twice(lambda: drawn_by_jobs(4), lambda: drawn_by_jobs(1))
    assert now == then


def test_numbers_of_threads_are_as_random_as_they_were(twice):
    (_, jobs, _), _ = twice(lambda: drawn_by_jobs(4), lambda: None)
    assert len({one for job in jobs for one in job}) == 16


def test_a_module_that_copied_the_functions_before_draws_from_the_same(twice, monkeypatch):
    import sys
    from types import ModuleType

    program = ModuleType("program")
    program.__file__ = "/home/somebody/program.py"
    program.chance, program.bits = random.random, random.getrandbits
    monkeypatch.setitem(sys.modules, "program", program)
    then, now = twice(lambda: [program.chance(), program.bits(9), random.random()])
    assert now == then


def test_the_class_and_its_instances_stay_usable(twice):
    def program():
        assert isinstance(random._inst, random.Random)
        state = random.getstate()
        first = random.random()
        random.setstate(state)
        assert random.random() == first

    twice(program)


def test_uninstalling_puts_back_the_very_objects(twice):
    names = ("random", "getrandbits", "seed", "gauss", "_urandom")
    before = [getattr(random, name) for name in names]
    twice(lambda: None)
    assert [getattr(random, name) for name in names] == before
    assert type(random._inst) is random.Random
