"""Where nothing is recorded, the decorators of a program cost next to nothing."""

import asyncio
import timeit

import playhead


@playhead.turn("respond")
def respond(question, *, more=None):
    return question


@playhead.turn("respond")
async def respond_later(question):
    return question


@playhead.turn("respond")
def respond_in_parts(question):
    yield question


def plain(question, *, more=None):
    return question


def test_a_turn_without_a_run_does_what_the_function_does():
    assert respond("q", more=1) == "q"
    assert asyncio.run(respond_later("q")) == "q"
    assert list(respond_in_parts("q")) == ["q"]


def test_a_turn_without_a_run_costs_as_much_as_a_few_calls():
    # The best of many short measurements, against a plain call on the same machine: load does not matter.
    def best(function):
        return min(timeit.repeat(lambda: function("q", more=1), number=2000, repeat=15))

    assert best(respond) < 12 * best(plain)
