"""`playhead.watch`: a store at both ends of a run, and every change between them."""

import asyncio

import pytest

from playhead.errors import UsageError
from playhead.hooks.state.watch import watch
from playhead.recording import deck, lanes


class Queue:
    def __init__(self, *items: str) -> None:
        self.waiting = list(items)
        self.done: dict[str, str] = {}

    def to_dict(self) -> dict:
        return {"waiting": list(self.waiting), "done": dict(self.done)}

    def claim_next(self, worker: str) -> str | None:
        return self.waiting.pop(0) if self.waiting else None

    async def mark_complete(self, item: str, result: str) -> None:
        await asyncio.sleep(0)
        if item in self.done:
            raise KeyError(item)
        self.done[item] = result


MUTATIONS = ["claim_next", "mark_complete"]


def snapshots(taping) -> list[tuple]:
    return [
        (one.data["store"], one.data["when"], one.data["value"])
        for one in taping.events("snapshot")
    ]


def test_a_store_is_snapshotted_at_the_start_and_at_the_end_of_the_run(taping):
    queue = Queue("a", "b")
    watch(queue, "to_dict", MUTATIONS, name="queue")
    queue.claim_next("w1")
    taping.recorder.say_last_words()
    assert snapshots(taping) == [
        ("queue", "start", {"waiting": ["a", "b"], "done": {}}),
        ("queue", "end", {"waiting": ["b"], "done": {}}),
    ]


def test_every_mutation_is_a_call_with_lane_arguments_and_result(taping):
    queue = Queue("a")
    watch(queue, "to_dict", MUTATIONS, name="queue")
    with lanes.lane("worker-1"):
        assert queue.claim_next("w1") == "a"
    asyncio.run(queue.mark_complete("a", result="ok"))
    with pytest.raises(KeyError):
        asyncio.run(queue.mark_complete("a", "twice"))
    assert taping.shown("state") == [
        ("queue.claim_next", {"worker": "w1"}, "a"),
        ("queue.mark_complete", {"item": "a", "result": "ok"}, None),
        ("queue.mark_complete", {"item": "a", "result": "twice"}, "builtins:KeyError"),
    ]
    first = taping.calls("state")[0]
    assert first.lane == "worker-1"
    assert first.data["effect"] == "write"


@pytest.mark.parametrize(
    ("snapshot", "value"),
    [
        ("waiting", ["a"]),
        ("to_dict", {"waiting": ["a"], "done": {}}),
        (lambda queue: len(queue.waiting), 1),
        (lambda: "of nothing", "of nothing"),
    ],
)
def test_a_snapshot_is_an_attribute_a_method_or_a_function(taping, snapshot, value):
    watch(Queue("a"), snapshot)
    assert snapshots(taping) == [("Queue", "start", value)]


def test_a_store_watched_before_the_run_is_snapshotted_before_its_first_change(taping):
    deck.deactivate(taping.deck)
    queue = Queue("a")
    watch(queue, "waiting", MUTATIONS)
    deck.activate(taping.deck)
    queue.claim_next("w")
    assert snapshots(taping) == [("Queue", "start", ["a"])]


def test_without_a_run_the_store_works_and_nothing_is_kept():
    queue = Queue("a")
    watch(queue, "to_dict", MUTATIONS)
    assert queue.claim_next("w") == "a"


def test_unwatch_puts_the_very_methods_back(taping):
    queue = Queue("a")
    before = queue.claim_next
    with watch(queue, "waiting", MUTATIONS):
        assert queue.claim_next != before
    assert queue.claim_next == before
    assert "claim_next" not in vars(queue)
    taping.recorder.say_last_words()
    assert [when for _, when, _ in snapshots(taping)] == ["start", "end"]


def test_slots_and_dunder_methods_are_watched_for_this_object_alone(taping):
    class Table:
        __slots__ = ("rows",)

        def __init__(self) -> None:
            self.rows = {}

        def __setitem__(self, key, value) -> None:
            self.rows[key] = value

    watched, other = Table(), Table()
    with watch(watched, "rows", ["__setitem__"], name="table"):
        watched["a"] = 1
        other["b"] = 2
    watched["c"] = 3
    assert taping.shown("state") == [("table.__setitem__", {"key": "a", "value": 1}, None)]
    assert (watched.rows, other.rows) == ({"a": 1, "c": 3}, {"b": 2})


def test_a_store_that_cannot_be_looked_at_is_a_hole_and_works_on(taping):
    queue = Queue("a")
    queue.to_dict = lambda: 1 / 0
    watch(queue, "to_dict", MUTATIONS, name="queue")
    assert queue.claim_next("w") == "a"
    (hole,) = taping.events("hole")
    assert hole.data == {
        "boundary": "state",
        "what": "queue",
        "why": "no snapshot: ZeroDivisionError: division by zero",
    }


def test_what_cannot_be_watched_is_refused_with_a_reason():
    with pytest.raises(UsageError, match="no method 'claim' to watch"):
        watch(Queue(), mutations=["claim"])
    with pytest.raises(UsageError, match="does not allow 'append' to be watched"):
        watch([], mutations=["append"])
    with pytest.raises(UsageError, match="has no 'size'"):
        watch(Queue(), "size")


def test_a_served_mutation_answers_and_leaves_the_store_alone(taping, replaying):
    queue = Queue("a", "b")
    watch(queue, "waiting", MUTATIONS, name="queue")
    queue.claim_next("w")
    fresh = Queue()
    with replaying(taping):
        watch(fresh, "waiting", MUTATIONS, name="queue")
        assert fresh.claim_next("w") == "a"
    assert fresh.waiting == []


def test_watching_a_store_twice_is_watching_it_once(taping):
    queue = Queue("a", "b")
    first = watch(queue, "waiting", ["claim_next"], name="queue")
    assert watch(queue, "waiting", MUTATIONS) is first
    queue.claim_next("w")
    assert taping.shown("state") == [("queue.claim_next", {"worker": "w"}, "a")]
    assert [when for _, when, _ in snapshots(taping)] == ["start"]
