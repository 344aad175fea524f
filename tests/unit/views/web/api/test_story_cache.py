"""Who asks the same at the same time shares an answer, and never one that is older than his question."""

import asyncio
import threading

import pytest

from playhead.views.web.api.story_cache import SharedAnswers

pytestmark = pytest.mark.asyncio


class Work:
    """Made when it is allowed to be; counts how often."""

    def __init__(self):
        self.begun, self.allowed = threading.Semaphore(0), threading.Semaphore(0)
        self.made = 0

    def __call__(self):
        self.begun.release()
        self.allowed.acquire()
        self.made += 1
        return self.made


async def test_many_who_come_meanwhile_get_one_answer_made_after_they_came():
    shared, work = SharedAnswers(2), Work()
    first = asyncio.create_task(shared.get("list", work))
    await asyncio.to_thread(work.begun.acquire)
    others = [asyncio.create_task(shared.get("list", work)) for _ in range(50)]
    await asyncio.sleep(0)
    work.allowed.release(2)
    assert await first == 1
    assert set(await asyncio.gather(*others)) == {2}
    assert work.made == 2


async def test_other_questions_are_answered_on_their_own():
    shared, work = SharedAnswers(2), Work()
    work.allowed.release(2)
    assert sorted(await asyncio.gather(shared.get("a", work), shared.get("b", work))) == [1, 2]
    assert shared._locks == {}
    assert shared._made == {}


async def test_who_comes_after_a_failure_is_answered():
    shared = SharedAnswers(1)

    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await shared.get("list", fail)
    assert await shared.get("list", lambda: 7) == 7
