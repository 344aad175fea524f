"""A turn is on the tape however it ends, and the program never notices it."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import playhead
from playhead.tape.reader import Tape


@pytest.fixture
def run(tmp_path):
    with playhead.record(store=tmp_path, name="agent") as run:
        yield run


def told(run, *kinds):
    tape = Tape(run.path)
    events = [event for event in tape.events() if not kinds or event.kind in kinds]
    assert list(tape.damage) == []
    return events


def ended(run):
    (event,) = told(run, "turn.end")
    return event.data


def test_a_turn_that_returns_says_what_it_was_for_and_how_long_it_took(run):
    with run.turn("respond", purpose="answer the user", input={"q": 1}) as turn:
        turn.seam("analyse", {"intent": "refund"})
        turn.seam("draft")
    start, first, second, end = told(run, "turn.start", "seam", "turn.end")
    assert start.data == {"name": "respond", "purpose": "answer the user", "input": {"q": 1}}
    assert start.why == "answer the user"
    assert first.data["value"] == {"intent": "refund"}
    assert [first.parent, second.parent, end.parent] == [start.seq] * 3
    assert [first.data["turn"], end.data["turn"]] == [start.seq] * 2
    assert 0 < first.data["took_ns"] == first.data["at_ns"] <= second.data["at_ns"]
    assert end.data["how"] == "returned"
    assert end.data["last_seam"] == "draft"
    assert [seam["name"] for seam in end.data["seams"]] == ["analyse", "draft"]
    assert end.data["took_ns"] >= second.data["at_ns"]


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()],
    ids=repr,
)
def test_a_turn_that_raises_keeps_the_error_the_last_seam_and_the_trace(run, error):
    def work():
        with run.turn("respond") as turn:
            turn.seam("one")
            turn.seam("two")
            raise error

    with pytest.raises(type(error)) as caught:
        work()
    assert caught.value is error
    end = ended(run)
    assert end["how"] == "raised"
    assert end["error"]["$exception"].endswith(type(error).__name__)
    assert end["last_seam"] == "two"
    assert [set(seam) for seam in end["seams"]] == [{"name", "at_ns", "took_ns"}] * 2


def test_a_turn_that_fails_before_its_first_seam_says_so(run):
    with pytest.raises(ZeroDivisionError), run.turn("respond"):
        1 / 0  # noqa: B018
    assert ended(run)["last_seam"] is None


def test_an_async_turn_that_is_cancelled_is_on_the_tape(run):
    async def work(started):
        async with run.turn("respond") as turn:
            turn.seam("waiting")
            started.set()
            await asyncio.Event().wait()

    async def main():
        started = asyncio.Event()
        task = asyncio.create_task(work(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended(run)["error"]["$exception"].endswith(":CancelledError")
    assert ended(run)["last_seam"] == "waiting"


def test_a_function_as_a_turn_keeps_its_arguments_its_value_and_its_name(run):
    @run.turn("add", purpose="sums")
    def add(a, b=2, *rest, c=3):
        return a + b + c

    assert add(1, c=5) == 8
    assert add.__name__ == "add"
    start = told(run, "turn.start")[0]
    assert start.data["input"] == {"a": 1, "c": 5}
    assert start.at.endswith(" add")
    assert ended(run)["value"] == 8


def test_a_turn_without_a_name_has_that_of_its_function(run):
    @playhead.turn
    def divide(a, b):
        playhead.seam("checked")
        return a / b

    @playhead.turn
    async def later(a):
        return a

    assert (divide(6, 3), divide.__name__, asyncio.run(later(1))) == (2, "divide", 1)
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    starts = [(one.data["name"], one.data["input"]) for one in told(run, "turn.start")]
    assert starts == [
        ("divide", {"a": 6, "b": 3}),
        ("later", {"a": 1}),
        ("divide", {"a": 1, "b": 0}),
    ]
    assert told(run, "turn.end")[-1].data["last_seam"] == "checked"


def test_a_method_as_a_turn_does_not_keep_self(run):
    class Agent:
        @run.turn("respond")
        def respond(self, text):
            return text.upper()

    assert Agent().respond("hi") == "HI"
    assert told(run, "turn.start")[0].data["input"] == {"text": "hi"}


def test_a_coroutine_function_as_a_turn_stays_one(run):
    @run.turn("respond")
    async def respond(text):
        await asyncio.sleep(0)
        playhead.seam("inside")
        return text

    assert asyncio.iscoroutinefunction(respond)
    assert asyncio.run(respond("x")) == "x"
    assert ended(run)["last_seam"] == "inside"


def test_each_call_of_a_function_is_a_turn_of_its_own(run):
    @run.turn("count")
    def count(n):
        return 0 if n == 0 else 1 + count(n - 1)

    assert count(3) == 3
    starts = told(run, "turn.start")
    assert [start.data["input"]["n"] for start in starts] == [3, 2, 1, 0]
    assert [start.parent for start in starts[1:]] == [start.seq for start in starts[:-1]]


def test_a_generators_turn_lasts_as_long_as_it_is_listened_to(run):
    @run.turn("stream")
    def stream(n):
        for i in range(n):
            run.emit("inside", i)
            got = yield i
            if got:
                run.emit("got", got)
        return "done"

    items = stream(2)
    assert told(run, "turn.start") == []
    assert next(items) == 0
    run.emit("between")
    assert items.send("hello") == 1
    with pytest.raises(StopIteration) as stop:
        next(items)
    assert stop.value.value == "done"
    start = told(run, "turn.start")[0]
    assert [event.parent == start.seq for event in told(run, "inside", "between", "got")] == [
        True,
        False,
        True,
        True,
    ]
    assert (ended(run)["how"], ended(run)["value"]) == ("returned", "done")


def test_a_generator_that_nobody_listens_to_any_more_was_left(run):
    cleaned = []

    @run.turn("stream")
    def stream():
        try:
            yield 1
        finally:
            cleaned.append(True)

    items = stream()
    next(items)
    del items
    gc.collect()
    assert cleaned == [True]
    assert ended(run)["how"] == "left"


def test_what_is_thrown_into_a_generator_arrives(run):
    @run.turn("stream")
    def stream():
        try:
            yield 1
        except KeyError as error:
            yield str(error)

    items = stream()
    next(items)
    assert items.throw(KeyError("x")) == "'x'"


def test_an_async_generators_turn_covers_its_steps_and_not_what_is_between(run):
    @run.turn("stream")
    async def stream(n):
        for i in range(n):
            run.emit("inside")
            yield i

    async def main():
        found = []
        async for item in stream(2):
            run.emit("between")
            found.append(item)
        return found

    assert asyncio.run(main()) == [0, 1]
    start = told(run, "turn.start")[0]
    inside = [event.parent == start.seq for event in told(run, "inside", "between")]
    assert inside == [True, False, True, False]
    assert ended(run)["how"] == "returned"


def test_an_error_in_an_async_generator_ends_its_turn(run):
    @run.turn("stream")
    async def stream():
        yield 1
        raise ValueError("no")

    async def main():
        async for _ in stream():
            pass

    with pytest.raises(ValueError, match="no"):
        asyncio.run(main())
    assert ended(run)["error"]["message"] == "no"


def test_events_calls_and_turns_inside_hang_under_the_turn(run):
    with run.turn("outer"):
        run.emit("a")
        with run.turn("inner"):
            run.emit("b")
        run.emit("c")
    outer, inner = told(run, "turn.start")
    a, b, c = told(run, "a", "b", "c")
    assert (inner.parent, a.parent, b.parent, c.parent) == (
        outer.seq,
        outer.seq,
        inner.seq,
        outer.seq,
    )


def test_a_seam_from_anywhere_belongs_to_the_turn_around_it(run):
    with run.turn("respond"):
        playhead.seam("one")
        run.seam("two")
        thread = threading.Thread(target=lambda: playhead.seam("three"))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: playhead.seam("four")).result()
    start = told(run, "turn.start")[0]
    assert [event.data["turn"] for event in told(run, "seam")] == [start.seq] * 4
    assert [seam["name"] for seam in ended(run)["seams"]] == ["one", "two", "three", "four"]


def test_a_seam_after_its_turn_belongs_to_the_run(run):
    go = threading.Event()

    def late():
        go.wait()
        playhead.seam("late")

    with run.turn("respond") as turn:
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    turn.seam("never")
    (seam,) = told(run, "seam")
    assert (seam.data["name"], seam.data["turn"]) == ("late", None)


def test_a_turn_does_not_keep_the_programs_objects_alive(run):
    class Large:
        alive = 0

        def __init__(self):
            Large.alive += 1

        def __del__(self):
            Large.alive -= 1

    with run.turn("respond") as turn:
        turn.seam("made", Large())
        gc.collect()
        assert Large.alive == 0


def test_retrieval_keeps_a_row_for_each_source_and_no_text(run):
    class Document:
        id, text, score, included = "b", "secret plans", 0.5, False
        reason = "too long"

    with run.turn("respond") as turn:
        turn.retrieval(
            [
                {"id": "a", "snippet": "hällo", "score": 0.9},
                Document(),
                {"doc_id": "c", "page_content": "x", "similarity": 0.3, "dropped": True},
            ]
        )
    (event,) = told(run, "retrieval")
    assert (event.data["count"], event.data["included"], event.data["dropped"]) == (3, 1, 2)
    first, second, third = event.data["sources"]
    assert (third["id"], third["score"], len(third["hash"])) == ("c", 0.3, 16)
    assert (first["id"], first["score"], first["bytes"], len(first["hash"])) == ("a", 0.9, 6, 16)
    assert (second["included"], second["why"]) == (False, "too long")
    assert "plans" not in str(event.data)
    assert event.data["bytes"] == 6


def test_retrieval_of_hostile_sources_is_recorded_as_far_as_it_goes(run):
    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError

        __class__ = property(lambda self: 1 / 0)

    def endless():
        while True:
            yield {"id": "x", "bytes": "many"}

    def broken():
        yield {"id": "y"}
        raise RuntimeError

    with run.turn("respond") as turn:
        turn.retrieval([Hostile(), 7, None])
        turn.retrieval(endless())
        turn.retrieval(broken())
        turn.retrieval(None)
    counts = [event.data["count"] for event in told(run, "retrieval")]
    assert counts == [3, 10_000, 2, 1]


def test_turns_without_a_run_cost_nothing_and_change_nothing():
    @playhead.turn("respond")
    def respond(x):
        playhead.seam("inside", x)
        return x

    assert respond(3) == 3
    with playhead.turn("other") as turn:
        turn.seam("x")
        turn.retrieval([1])
    assert turn.last_seam is None


def test_a_function_decorated_before_any_run_records_into_the_one_that_is_current(tmp_path):
    @playhead.turn("respond")
    def respond():
        return 1

    with playhead.record(store=tmp_path) as first:
        respond()
    with playhead.record(store=tmp_path) as second:
        respond()
    assert len(told(first, "turn.start")) == len(told(second, "turn.start")) == 1


def test_a_forked_child_names_the_turn_that_its_parent_began(run):
    with run.turn("respond") as turn:
        child = os.fork()
        if child == 0:
            turn.seam("in the child")
            run.emit("also")
            os._exit(0)
        os.waitpid(child, 0)
    start = told(run, "turn.start")[0]
    (seam,) = told(run, "seam")
    assert seam.pid == child
    assert seam.data["turn"] == seam.parent == start.ref
    assert told(run, "also")[0].parent == start.ref
    assert len(told(run, "turn.end")) == 1


def test_a_killed_process_leaves_its_turn_open_with_all_seams_so_far(tmp_path):
    program = """
        import os, signal, sys, playhead
        with playhead.record(store=sys.argv[1], run_id="r") as run:
            with run.turn("respond") as turn:
                turn.seam("one"); turn.seam("two")
                os.kill(os.getpid(), signal.SIGKILL)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    kinds = [event.kind for event in Tape(tmp_path / "runs" / "r").events()]
    assert kinds == ["segment.start", "run.start", "turn.start", "seam", "seam"]


def test_a_decorated_function_enters_one_function_of_ours_where_nothing_is_recorded():
    """Functions are counted, because time depends on the machine."""
    decorated = playhead.turn("respond")(lambda value: value)
    entered = []

    def count(frame, event, _):
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        answer = decorated(3)
    finally:
        sys.setprofile(None)
    assert len(entered) <= 2, entered  # the wrapper and the function itself
    assert (answer, asyncio.run(playhead.turn("respond")(_echo)(4))) == (3, 4)


async def _echo(value):
    return value


def test_a_function_decorated_before_the_run_is_recorded_in_it(tmp_path):
    decorated = playhead.turn("respond")(lambda value: value)
    decorated(1)
    with playhead.record(store=tmp_path) as run:
        decorated(2)
    decorated(3)
    kinds = [event.kind for event in Tape(run.path).events()]
    assert kinds.count("turn.start") == kinds.count("turn.end") == 1
