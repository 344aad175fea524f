"""Taped answers take their time: the one that was first is first again."""

import asyncio

import pytest
import trio
import trio.testing

from playhead.recording import pacing


class Clock:
    def __init__(self, *, rests=True):
        self.rests = rests
        self.rested = []
        self.is_live = False

    def rest(self, ns):
        self.rested.append(ns)

    def go_live(self):
        self.is_live = True


@pytest.fixture
def clock():
    made = Clock()
    pacing.begin(made)
    yield made
    pacing.end(made)


def test_without_a_replay_nobody_rests():
    pacing.rest(10**18)
    asyncio.run(pacing.rest_async(10**18))
    pacing.go_live("llm")


def test_an_answer_takes_as_long_as_it_took(clock):
    pacing.rest(5)
    pacing.rest(0)
    pacing.rest(-3)
    assert clock.rested == [5]


def test_answers_of_tasks_come_in_the_order_they_came(clock):
    async def main():
        order = []

        async def answer(ns):
            await pacing.rest_async(ns)
            order.append(ns)

        await asyncio.gather(*map(answer, (90_000_000, 30_000_000, 60_000_000)))
        return order

    assert asyncio.run(main()) == [30_000_000, 60_000_000, 90_000_000]


def test_so_do_those_of_trio(clock):
    order = []

    async def answer(ns):
        await pacing.rest_async(ns)
        order.append(ns)

    async def main():
        async with trio.open_nursery() as nursery:
            for ns in (30_000_000, 10_000_000, 20_000_000):
                nursery.start_soon(answer, ns)

    # Virtual time: on a busy machine two of the waits would end in one turn of trio's loop, which has no order within.
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert order == [10_000_000, 20_000_000, 30_000_000]


def test_where_something_is_live_answers_come_at_once(clock):
    clock.rests = False
    asyncio.run(pacing.rest_async(10**18))
    pacing.go_live("http")
    assert clock.is_live


def test_another_replay_s_time_is_not_ended_by_mistake(clock):
    pacing.end(Clock())
    pacing.rest(7)
    assert clock.rested == [7]
