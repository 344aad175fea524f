"""Sets of tasks and scopes iterate in the order in which these were made, not by address."""

import asyncio
import concurrent.futures
import random

import pytest

from playhead.hooks.guest import Patches
from playhead.hooks.order.task_sets import AddedSet, TaskSet, hook
from playhead.recording import lanes


class Task:
    """A task with a name of its own and a number, at an address that has nothing to do with the number."""

    def __init__(self, number):
        setattr(self, lanes.NUMBER, number)
        self.number = number

    def get_name(self):
        return "worker"


@pytest.fixture
def tasks():
    made = [Task(number) for number in range(40)]
    random.Random(7).shuffle(made)
    return made


def test_tasks_with_names_iterate_in_the_order_in_which_they_were_made(tasks):
    assert [one.number for one in TaskSet(tasks)] == list(range(40))


@pytest.mark.parametrize(
    "change",
    [
        lambda all_tasks, some: all_tasks - some,
        lambda all_tasks, some: all_tasks.difference(some),
        lambda all_tasks, some: (all_tasks - some) | (all_tasks & some),
        lambda all_tasks, some: (all_tasks - some).union(some),
    ],
)
def test_a_set_made_from_a_set_of_tasks_keeps_the_order(tasks, change):
    numbers = [one.number for one in change(TaskSet(tasks), set(tasks[:5]))]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 35


def test_tasks_are_popped_in_the_order_in_which_they_were_made(tasks):
    left = TaskSet(tasks)
    assert [left.pop().number for _ in tasks] == list(range(40))
    with pytest.raises(KeyError):
        left.pop()


def test_scopes_iterate_in_the_order_in_which_they_were_added(tasks):
    added = AddedSet(tasks)
    added.remove(tasks[3])
    added.discard(tasks[4])
    added.discard(tasks[4])
    added.add(tasks[3])
    assert list(added) == [*tasks[:3], *tasks[5:], tasks[3]]
    assert (len(added), tasks[4] in added, tasks[3] in added) == (39, False, True)


def test_jobs_that_are_done_already_are_completed_in_the_order_in_which_they_are_given():
    patches = Patches()
    hook(asyncio.tasks, patches)

    async def main():
        jobs = [asyncio.wrap_future(done(n)) for n in range(20)]
        await asyncio.sleep(0)
        given = random.Random(7).sample(jobs, len(jobs))
        completed = [await one for one in asyncio.as_completed(given)]
        waited, _ = await asyncio.wait(given)
        return completed == [one.result() for one in given], [one.result() for one in waited]

    def done(n):
        future = concurrent.futures.Future()
        future.set_result(n)
        return future

    try:
        assert asyncio.run(main()) == (True, list(range(20)))
    finally:
        patches.undo()
