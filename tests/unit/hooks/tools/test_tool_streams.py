"""Tools that yield: items on the tape as they come, and again from it."""

import asyncio
import inspect

import pytest

from playhead.errors import Divergence
from playhead.hooks.tools.decorator import tool


@tool
def count(upto: int):
    for number in range(upto):
        yield {"number": number}
    return "done"


@tool
async def tick(upto: int):
    for number in range(upto):
        yield number


async def collect(stream) -> list:
    return [item async for item in stream]


def yielded(taping, call) -> str:
    chunks = [one.data for one in taping.events("chunk") if one.data["call"] == call.seq]
    assert {one["stream"] for one in chunks} <= {"yielded"}
    return "".join(one["text"] for one in chunks)


def test_a_decorated_generator_is_a_generator_still():
    assert inspect.isgeneratorfunction(count)
    assert inspect.isasyncgenfunction(tick)
    assert list(count(2)) == [{"number": 0}, {"number": 1}]
    assert asyncio.run(collect(tick(2))) == [0, 1]


def test_each_item_is_a_line_on_the_tape_and_the_return_value_the_outcome(taping):
    def consume():
        return (yield from count(2))

    assert list(consume()) == [{"number": 0}, {"number": 1}]
    call = taping.call("count")
    assert yielded(taping, call) == '{"number":0}\n{"number":1}\n'
    assert taping.outcome(call)["value"] == "done"


def test_items_of_an_async_generator_are_on_the_tape(taping):
    assert asyncio.run(collect(tick(3))) == [0, 1, 2]
    call = taping.call("tick")
    assert yielded(taping, call) == "0\n1\n2\n"
    assert taping.outcome(call)["how"] == "returned"


def test_a_consumer_that_stops_early_has_left(taping):
    for item in count(5):
        if item["number"] == 1:
            break
    call = taping.call("count")
    assert taping.outcome(call)["how"] == "left"
    assert yielded(taping, call) == '{"number":0}\n{"number":1}\n'


def test_what_the_consumer_does_between_items_is_not_inside_the_tool(taping):
    @tool
    def inside():
        return 1

    @tool
    def nested():
        inside()
        yield 1

    @tool
    def between():
        return 2

    for _ in nested():
        between()
    assert taping.call("inside").parent == taping.call("nested").seq
    assert taping.call("between").parent == 0


def test_values_sent_and_errors_thrown_reach_the_tool(taping):
    heard = []

    @tool
    def echo():
        try:
            heard.append((yield "ready"))
            yield "again"
        except KeyError:
            yield "caught"

    stream = echo()
    assert next(stream) == "ready"
    assert stream.send("hello") == "again"
    assert stream.throw(KeyError("k")) == "caught"
    assert heard == ["hello"]
    with pytest.raises(StopIteration):
        next(stream)
    assert yielded(taping, taping.call("echo")) == '"ready"\n"again"\n"caught"\n'


def test_values_sent_and_errors_thrown_reach_an_async_tool(taping):
    heard = []

    @tool
    async def echo():
        try:
            heard.append((yield "ready"))
            yield "again"
        except KeyError:
            yield "caught"

    async def talk():
        stream = echo()
        items = [await stream.__anext__(), await stream.asend("hello")]
        items.append(await stream.athrow(KeyError("k")))
        await stream.aclose()
        return items

    assert asyncio.run(talk()) == ["ready", "again", "caught"]
    assert heard == ["hello"]
    assert taping.outcome(taping.call("echo"))["how"] == "left"


def test_an_error_in_the_middle_comes_after_the_items_before_it(taping, replaying):
    @tool
    def fail():
        yield 1
        raise ValueError("broke")

    def consume():
        got = []
        with pytest.raises(ValueError, match="broke"):
            got.extend(_into(got, fail()))
        return got

    assert consume() == [1]
    with replaying(taping) as again:
        assert consume() == [1]
        assert again.shown() == taping.shown() == [("fail", {}, "builtins:ValueError")]


def _into(got, stream):
    for item in stream:
        got.append(item)
    return ()


def test_items_and_return_value_are_served_without_running_the_tool(taping, replaying):
    ran = []

    @tool
    def draw():
        ran.append(1)
        yield (1, 2)
        return {"left": 0}

    def consume():
        result = []

        def inner():
            result.append((yield from draw()))

        return list(inner()), result

    assert consume() == ([(1, 2)], [{"left": 0}])
    with replaying(taping):
        assert consume() == ([(1, 2)], [{"left": 0}])
    assert ran == [1]


def test_an_async_stream_is_served_without_running_the_tool(taping, replaying):
    assert asyncio.run(collect(tick(3))) == [0, 1, 2]
    with replaying(taping) as again:
        assert asyncio.run(collect(tick(3))) == [0, 1, 2]
        assert yielded(again, again.call("tick")) == "0\n1\n2\n"


def test_asking_for_more_than_was_listened_to_is_a_divergence(taping, replaying):
    next(count(5))
    with replaying(taping):
        stream = count(5)
        assert next(stream) == {"number": 0}
        with pytest.raises(Divergence, match="stopped reading from count"):
            next(stream)
