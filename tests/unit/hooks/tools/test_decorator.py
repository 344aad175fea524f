"""`@playhead.tool` on functions of every kind: recorded when called, served as they answered."""

import asyncio
import dataclasses
import enum
import functools
import inspect
from pathlib import Path

import pytest

from playhead.encoding.values import thaw
from playhead.errors import Divergence, UsageError
from playhead.hooks.tools.decorator import tool
from playhead.recording import deck, lanes
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor


class OutOfStock(Exception):
    def __init__(self, item: str, *, left: int) -> None:
        super().__init__(f"only {left} of {item}")
        self.left = left


class Size(enum.Enum):
    SMALL = "s"


@dataclasses.dataclass(frozen=True)
class Order:
    id: int
    size: Size
    lines: list[str] = dataclasses.field(default_factory=list)


@tool
def search(query: str, limit: int = 10) -> list[str]:
    """Find things."""
    return [query] * limit


@tool(effect="irreversible", name="send_mail")
def send(to: str, *copies: str, **headers: str) -> bool:
    return bool(to)


@tool
async def fetch(url: str) -> dict:
    await asyncio.sleep(0)
    return {"url": url}


@tool
def place(item: str) -> Order:
    if item == "moon":
        raise OutOfStock(item, left=0)
    return Order(7, Size.SMALL, [item])


def test_without_a_deck_the_function_is_called_as_if_undecorated():
    assert deck.active() is None
    assert search("a", limit=2) == ["a", "a"]
    assert asyncio.run(fetch("x")) == {"url": "x"}


def test_name_documentation_and_signature_are_kept():
    assert search.__name__ == "search"
    assert search.__doc__ == "Find things."
    assert str(inspect.signature(search)) == "(query: str, limit: int = 10) -> list[str]"
    assert inspect.iscoroutinefunction(fetch)


def test_arguments_are_recorded_by_name_without_defaults(taping):
    search("a", 1)
    search(query="b", limit=1)
    search("c")
    assert [row[1] for row in taping.shown()] == [
        {"query": "a", "limit": 1},
        {"query": "b", "limit": 1},
        {"query": "c"},
    ]


def test_more_arguments_than_names_are_a_list_and_keywords_keep_theirs(taping):
    send("ada", "bob", "eve", subject="hi")
    call = taping.call("send_mail")
    assert call.data["request"]["arguments"] == {
        "to": "ada",
        "copies": ["bob", "eve"],
        "subject": "hi",
    }
    assert call.data["effect"] == "irreversible"


def test_a_result_an_exception_and_their_times_are_on_the_tape(taping):
    place("cup")
    with pytest.raises(OutOfStock):
        place("moon")
    good, bad = (taping.outcome(call) for call in taping.calls())
    assert good["value"]["fields"]["id"] == 7
    assert bad["how"] == "raised"
    assert bad["error"]["message"] == "only 0 of moon"
    assert good["took_ns"] >= 0


@tool(effect="read")
def echo(value: object) -> object:
    return value


def test_whatever_a_tool_is_given_and_gives_every_call_says_the_same_of_it(taping):
    values = [
        "plain",
        {"n": [1, 2.5, None, True]},
        'a "b" \\ é \n',
        b"\xff",
        "x" * 200_000,
        2**70,
        1e-9,
    ]
    for value in values:
        echo(value)
    calls = taping.calls()
    assert {tuple(one.data) for one in calls} == {("boundary", "name", "request", "effect")}
    given = [one.data["request"]["arguments"]["value"] for one in calls]
    gave = [taping.outcome(one) for one in calls]
    assert [thaw(one) for one in given] == values
    assert [thaw(one["value"]) for one in gave] == values
    assert {(one["how"], *list(one)) for one in gave} == {
        ("returned", "call", "how", "took_ns", "value")
    }


def test_secrets_in_what_a_tool_is_given_and_gives_are_taken_out(tmp_path):
    secret = "sk-ant-api03-" + "Zq7w" * 10
    recorder = Recorder(
        run=tmp_path, run_id="run", who="test", redactor=Redactor(key=b"k", names=["pin"])
    )
    opened = deck.Deck(recorder)
    deck.activate(opened)
    for value in ("plain", secret, {"password": "hunter2 and more"}, {"pin": "sesame"}, "plain"):
        echo(value)
    recorder.close()
    deck.deactivate(opened)
    written = "".join(one.read_text() for one in tmp_path.glob("tape-*.jsonl"))
    assert written.count('"plain"') == 4
    for hidden in (secret, "hunter2", "sesame"):
        assert hidden not in written


def test_the_call_is_on_the_tape_before_the_tool_runs(taping):
    seen = []

    @tool
    def look() -> None:
        seen.append([call.data["name"] for call in taping.calls()])

    look()
    assert seen == [["look"]]


def test_what_a_tool_does_is_inside_it(taping):
    @tool
    def outer() -> list[str]:
        return search("deep", 1)

    outer()
    assert taping.call("search").parent == taping.call("outer").seq


def test_wrong_arguments_are_the_function_s_own_to_refuse(taping):
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        search("a", colour="red")
    assert taping.shown() == [("search", {"query": "a", "colour": "red"}, "builtins:TypeError")]


class Desk:
    @tool
    def greet(self, who: str) -> str:
        return f"hello {who}"

    @tool
    @classmethod
    def count(cls, upto: int) -> int:
        return upto

    @classmethod
    @tool
    def name(cls, of: str) -> str:
        return f"{cls.__name__} of {of}"

    @staticmethod
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    @tool
    async def wait(self, turns: int) -> int:
        return turns


def test_methods_of_all_kinds_are_recorded_without_their_object(taping):
    desk = Desk()
    assert desk.greet("ada") == "hello ada"
    assert Desk.count(3) == 3
    assert desk.name(of="oak") == "Desk of oak"
    assert Desk.add(1, b=2) == 3
    assert asyncio.run(desk.wait(2)) == 2
    assert taping.shown() == [
        ("greet", {"who": "ada"}, "hello ada"),
        ("count", {"upto": 3}, 3),
        ("name", {"of": "oak"}, "Desk of oak"),
        ("add", {"a": 1, "b": 2}, 3),
        ("wait", {"turns": 2}, 2),
    ]


def test_bound_methods_partials_builtins_and_callable_objects_can_be_tools(taping):
    class Adder:
        def __call__(self, a: int, b: int) -> int:
            return a + b

    class AsyncAdder:
        async def __call__(self, a: int) -> int:
            return a

    assert tool(Adder(), name="adder")(1, 2) == 3
    assert asyncio.run(tool(AsyncAdder(), name="later")(4)) == 4
    assert tool(functools.partial(pow, 2), name="power")(5) == 32
    assert tool(len)("four") == 4
    assert [row[::2] for row in taping.shown()] == [
        ("adder", 3),
        ("later", 4),
        ("power", 32),
        ("len", 4),
    ]


def test_a_plain_function_that_hands_out_a_coroutine_ends_when_that_does(taping):
    async def inner() -> str:
        return "late"

    @tool
    def hand_out():
        return inner()

    assert asyncio.run(_awaited(hand_out())) == "late"
    assert taping.shown() == [("hand_out", {}, "late")]


async def _awaited(awaitable):
    return await awaitable


def test_parallel_calls_have_a_lane_each(hooks, taping):
    hooks()

    async def both() -> list:
        return await asyncio.gather(fetch("a"), fetch("b"))

    with lanes.lane("shop"):
        asyncio.run(both())
    with lanes.lane("worker-3"):
        search("c", 1)
    assert [call.lane for call in taping.calls()] == ["shop/1", "shop/2", "worker-3"]


def test_a_cancelled_tool_was_left_by_the_agent(taping):
    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(hang(), 0.01)

    asyncio.run(give_up())
    assert taping.outcome(taping.call("hang"))["how"] == "left"


def test_results_are_served_without_running_the_tool(taping, replaying):
    ran = []

    @tool
    def roll(sides: int) -> tuple[int, str]:
        ran.append(sides)
        return len(ran), "\N{GAME DIE}"

    assert [roll(6), roll(6)] == [(1, "\N{GAME DIE}"), (2, "\N{GAME DIE}")]
    with replaying(taping) as again:
        assert [roll(6), roll(6)] == [(1, "\N{GAME DIE}"), (2, "\N{GAME DIE}")]
        assert again.shown() == taping.shown()
    assert ran == [6, 6]


def test_classes_that_the_annotation_names_come_back_as_themselves(taping, replaying):
    placed = place("cup")
    with replaying(taping):
        served = place("cup")
    assert served == placed
    assert type(served) is Order


def test_an_exception_comes_back_with_its_class_arguments_and_state(taping, replaying):
    with pytest.raises(OutOfStock):
        place("moon")
    with replaying(taping), pytest.raises(OutOfStock, match="only 0 of moon") as caught:
        place("moon")
    assert caught.value.left == 0


def test_a_missing_file_is_missing_again(taping, replaying):
    @tool
    def read(path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    with pytest.raises(FileNotFoundError) as first:
        read("/no/such/file")
    with replaying(taping), pytest.raises(FileNotFoundError) as again:
        read("/no/such/file")
    assert again.value.errno == first.value.errno


def test_a_result_that_no_codec_holds_is_a_divergence_and_no_look_alike(taping, replaying):
    class Socket:
        pass

    @tool
    def connect() -> object:
        return Socket()

    connect()
    with replaying(taping), pytest.raises(Divergence, match=r"connect cannot be served.*Socket"):
        connect()


def test_a_cancelled_tool_waits_to_be_cancelled_again(taping, replaying):
    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(hang(), 0.01)

    asyncio.run(give_up())
    with replaying(taping) as again:
        asyncio.run(give_up())
        assert again.outcome(again.call("hang"))["how"] == "left"


def test_a_divergence_of_the_mode_passes_through(tmp_path, taping):
    class Refuse:
        def answer(self, call, lane):
            raise Divergence("no")

    taping.deck.mode = Refuse()
    with pytest.raises(Divergence, match="no"):
        search("a")


@pytest.mark.parametrize("wrong", [Desk, 7])
def test_what_is_no_function_is_refused_with_a_reason(wrong):
    with pytest.raises(UsageError, match="cannot be a tool"):
        tool(wrong)


def test_an_unknown_effect_is_refused():
    with pytest.raises(UsageError, match="'explode'; expected one of read, write, irreversible"):
        tool(effect="explode")
