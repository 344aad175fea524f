"""A tap writes down what an emitter is called with; the program sees no difference at all."""

import asyncio
import dataclasses
import enum
import functools
import inspect
import itertools
import subprocess
import sys
import textwrap
import threading
import types

import pydantic
import pytest

import playhead
from playhead.errors import UsageError
from playhead.tape.reader import Tape


@pytest.fixture
def run(tmp_path):
    with playhead.record(store=tmp_path, name="agent") as run:
        yield run


def told(run):
    tape = Tape(run.path)
    ours = ("segment.start", "run.start", "run.end", "segment.end")
    found = [(event.kind, event.data) for event in tape.events() if event.kind not in ours]
    assert list(tape.damage) == []
    return found


class Bus:
    def __init__(self):
        self.seen = []

    def emit(self, kind, data=None, **more):
        self.seen.append((kind, data, more))
        return len(self.seen)

    @staticmethod
    def static(kind, data=None):
        return kind, data

    @classmethod
    def by_class(cls, kind):
        return cls, kind

    async def later(self, kind):
        await asyncio.sleep(0)
        return self, kind


class SubBus(Bus):
    pass


def test_an_objects_emitter_is_recorded_and_works_as_before(run):
    bus, other = Bus(), Bus()
    tap = playhead.tap(bus)
    assert bus.emit("plan", {"n": 1}) == 1
    assert other.emit("unheard") == 1
    tap.untap()
    assert bus.emit("after") == 2
    assert told(run) == [("plan", {"n": 1})]
    assert bus.seen == [("plan", {"n": 1}, {}), ("after", None, {})]
    assert "emit" not in vars(bus)


def test_a_class_is_tapped_for_all_its_objects_and_put_back(run):
    before = vars(Bus)["emit"]
    with playhead.tap(Bus):
        Bus().emit("a")
        SubBus().emit("b", x=1)
    assert vars(Bus)["emit"] is before
    Bus().emit("c")
    assert told(run) == [("a", None), ("b", {"x": 1})]


def test_an_inherited_emitter_is_tapped_where_it_was_asked_for(run):
    with playhead.tap(SubBus):
        SubBus().emit("a")
        Bus().emit("b")
    assert "emit" not in vars(SubBus)
    assert told(run) == [("a", None)]


def test_static_and_class_methods_stay_what_they_are(run):
    with playhead.tap(Bus, "static"), playhead.tap(Bus, "by_class"), playhead.tap(SubBus, "static"):
        assert Bus.static("a", 1) == ("a", 1)
        assert SubBus().static("b") == ("b", None)
        assert Bus.by_class("c") == (Bus, "c")
        assert SubBus.by_class("d") == (SubBus, "d")
    assert isinstance(vars(Bus)["static"], staticmethod)
    assert isinstance(vars(Bus)["by_class"], classmethod)
    assert [kind for kind, _ in told(run)] == ["a", "b", "c", "d"]


def test_a_modules_function_is_tapped(run):
    module = types.ModuleType("events")
    module.emit = lambda kind: kind.upper()
    with playhead.tap(module):
        assert module.emit("x") == "X"
    assert told(run) == [("x", None)]


def test_a_callable_object_in_a_class_is_not_given_a_self(run):
    class Sink:
        emit = functools.partial(str.upper)

        class Call:
            def __call__(self, kind):
                return kind * 2

        send = Call()

    with playhead.tap(Sink), playhead.tap(Sink, "send"):
        assert Sink().emit("a") == "A"
        assert Sink().send("b") == "bb"
    assert told(run) == [("a", None), ("b", None)]


def test_an_async_emitter_stays_one(run):
    bus = Bus()
    with playhead.tap(bus, "later"), playhead.tap(SubBus, "later"):
        assert inspect.iscoroutinefunction(bus.later)
        assert inspect.iscoroutinefunction(SubBus.later)
        assert asyncio.run(bus.later("a")) == (bus, "a")
        sub = SubBus()
        assert asyncio.run(sub.later("b")) == (sub, "b")
    assert told(run) == [("a", None), ("b", None)]


def test_what_an_emitter_raises_reaches_the_program(run):
    class Broken:
        def emit(self, kind):
            raise KeyError(kind)

    broken = Broken()
    playhead.tap(broken)
    with pytest.raises(KeyError, match="x"):
        broken.emit("x")
    with pytest.raises(TypeError):
        broken.emit()
    assert told(run) == [("x", None), ("emit", None)]


def test_an_object_with_slots_is_tapped_alone(run):
    class Slotted:
        __slots__ = ()

        def emit(self, kind):
            return kind

    one, other = Slotted(), Slotted()
    before = vars(Slotted)["emit"]
    with playhead.tap(one):
        assert (one.emit("a"), other.emit("b")) == ("a", "b")
    assert vars(Slotted)["emit"] is before
    assert told(run) == [("a", None)]


def test_frozen_objects_and_models_are_tapped(run):
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        def emit(self, kind):
            return kind

    class Model(pydantic.BaseModel):
        def emit(self, kind):
            return kind

    for one in (Frozen(), Model()):
        with playhead.tap(one):
            assert one.emit("a") == "a"
        assert "emit" not in vars(one)
    assert len(told(run)) == 2


@pytest.mark.parametrize("owner", [object(), 7, Bus(), Bus])
def test_what_is_no_emitter_is_refused_with_advice(owner):
    with pytest.raises(UsageError, match=r"to tap\. Name the one"):
        playhead.tap(owner, "no_such_method")


@pytest.mark.parametrize(("owner", "name"), [([], "append"), (list, "append")])
def test_what_cannot_be_replaced_is_refused_with_advice(owner, name):
    with pytest.raises(UsageError, match="does not let 'append' be replaced"):
        playhead.tap(owner, name)


def test_tapping_twice_records_once(run):
    bus = Bus()
    first, second = playhead.tap(bus), playhead.tap(bus)
    bus.emit("a")
    second.untap()
    first.untap()
    bus.emit("b")
    assert told(run) == [("a", None)]


def test_a_wrapper_that_came_later_survives_the_end_of_the_tap(run):
    bus = Bus()
    tap = playhead.tap(bus)
    inner = bus.emit
    bus.emit = lambda kind: ("wrapped", inner(kind))
    tap.untap()
    assert bus.emit("a") == ("wrapped", 1)
    assert told(run) == []


class Kind(enum.Enum):
    PLAN = "plan"
    COUNT = 3


@dataclasses.dataclass
class Planned:
    type: str
    steps: int


class Untyped:
    def __repr__(self):
        return "untyped"


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "data"),
    [
        (("plan",), {}, "plan", None),
        (("plan", 7), {}, "plan", 7),
        (("plan", {"a": 1}), {"b": 2}, "plan", {"a": 1, "b": 2}),
        (("plan", 1, 2), {"c": 3}, "plan", {"args": [1, 2], "c": 3}),
        ((Kind.PLAN, 1), {}, "plan", 1),
        ((Kind.COUNT,), {}, "COUNT", None),
        (({"type": "plan", "n": 1},), {}, "plan", {"n": 1}),
        (({"event": Kind.PLAN, "n": 1},), {}, "plan", {"n": 1}),
        (({"n": 1},), {}, "emit", {"n": 1}),
        ((), {"kind": "plan", "n": 1}, "plan", {"n": 1}),
        ((), {"n": 1}, "emit", {"n": 1}),
        ((), {}, "emit", None),
        ((1, 2), {}, "emit", {"args": [1, 2]}),
    ],
    ids=str,
)
def test_the_ways_of_emitting_are_understood(run, args, kwargs, kind, data):
    class Sink:
        def emit(self, *args, **kwargs):
            return args, kwargs

    sink = Sink()
    playhead.tap(sink)
    assert sink.emit(*args, **kwargs) == (args, kwargs)
    assert told(run) == [(kind, data)]


def test_event_objects_give_their_type_and_their_fields(run):
    heard = playhead.on_event()
    assert heard(Planned("plan", 3)) is None
    heard(Untyped())
    (first, second) = told(run)
    assert first[0] == "plan"
    assert first[1]["fields"] == {"type": "plan", "steps": 3}
    assert second[0] == "Untyped"


def test_hostile_events_do_not_reach_the_program(run):
    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __repr__(self):
            raise RuntimeError

    class Endless(dict):
        def items(self):
            return itertools.count()

        get = __getitem__ = None

    heard = playhead.on_event(run)
    heard(Hostile())
    heard(Endless(type="x", n=1))
    assert [kind for kind, _ in told(run)] == ["event", "x"]


def test_an_event_without_the_member_that_is_looked_for_keeps_its_kind(run):
    heard = playhead.on_event(
        who=lambda event: event["speaker"], why=lambda event: event.get("motive")
    )
    heard("said", {"speaker": "Ann", "motive": "asked"})
    heard("silent", {"motive": "none"})
    heard("odd", object())
    events = [event for event in Tape(run.path).events() if not event.ours]
    assert [(one.kind, one.who, one.why) for one in events] == [
        ("said", "Ann", "asked"),
        ("silent", "agent", "none"),
        ("odd", "agent", None),
    ]


def test_who_and_why_are_found_in_the_data_of_an_event(run):
    heard = playhead.on_event()
    heard("prompt", data={"agent": "Dreamer", "reason": "asked"}, level=1)
    heard({"type": "prompt", "payload": {"agent": "Dreamer", "reason": "asked"}})
    events = [event for event in Tape(run.path).events() if not event.ours]
    assert [(one.who, one.why) for one in events] == [("Dreamer", "asked")] * 2


def test_a_users_kind_that_is_one_of_ours_stays_the_users(run):
    playhead.on_event(run)("run.end", {"status": "nonsense"})
    run.emit("segment.start")
    events = [event for event in Tape(run.path).events() if event.user]
    assert [(event.kind, event.ours) for event in events] == [
        ("run.end", False),
        ("segment.start", False),
    ]


def test_where_an_event_was_emitted_is_the_callers_line(run):
    bus = Bus()
    playhead.tap(bus)
    bus.emit("x")
    (event,) = (event for event in Tape(run.path).events() if event.kind == "x")
    assert event.at.endswith("test_where_an_event_was_emitted_is_the_callers_line")
    assert "test_tap.py" in event.at


def test_without_a_run_one_is_opened_and_ends_with_the_process(tmp_path):
    program = """
        import sys, threading, playhead
        class Bus:
            def emit(self, kind):
                return kind
        bus = Bus()
        playhead.tap(bus)
        threads = [threading.Thread(target=bus.emit, args=(f"k{n}",)) for n in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(playhead.current().path)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    env = {"PLAYHEAD_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(argv, check=True, env=env, capture_output=True)
    (path,) = (tmp_path / "runs").iterdir()
    kinds = [event.kind for event in Tape(path).events()]
    assert sorted(kinds[2:10]) == [f"k{n}" for n in range(8)]
    assert kinds[-2:] == ["run.end", "segment.end"]


def test_a_tap_may_be_used_from_many_threads(run):
    bus = Bus()
    playhead.tap(bus)
    threads = [
        threading.Thread(target=lambda n=n: [bus.emit(f"k{n}", i) for i in range(50)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(4):
        assert [data for kind, data in told(run) if kind == f"k{n}"] == list(range(50))
