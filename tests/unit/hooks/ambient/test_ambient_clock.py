"""Every way in which Python tells the time says the same in a replay."""

import datetime
import email.utils
import logging
import os
import subprocess
import sys
import time
import warnings
from types import ModuleType
from zoneinfo import ZoneInfo

import pytest

from playhead import clock
from playhead.hooks.ambient.clock_reads import hook_datetime, hook_time
from playhead.hooks.guest import NotAsExpected, Patches

UTC = datetime.timezone.utc


class Moment(datetime.datetime):
    """A subclass, as pandas, pendulum and freezegun have them."""


class Day(datetime.date):
    pass


@pytest.fixture
def twice(twice_with):
    return twice_with((hook_time, time), (hook_datetime, datetime))


READINGS = {
    "time": lambda: time.time(),
    "time_ns": lambda: time.time_ns(),
    "localtime": lambda: time.localtime(),
    "gmtime": lambda: time.gmtime(),
    "ctime": lambda: time.ctime(),
    "asctime": lambda: time.asctime(),
    "strftime": lambda: time.strftime("%Y-%m-%d %H:%M:%S %z"),
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "clock_gettime_ns": lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC),
    "perf_counter": lambda: time.perf_counter(),
    "perf_counter_ns": lambda: time.perf_counter_ns(),
    "monotonic": lambda: time.monotonic(),
    "process_time": lambda: time.process_time(),
    "thread_time_ns": lambda: time.thread_time_ns(),
    "now": lambda: datetime.datetime.now(),
    "now in UTC": lambda: datetime.datetime.now(UTC),
    "now elsewhere": lambda: datetime.datetime.now(tz=ZoneInfo("Pacific/Auckland")),
    "today": lambda: datetime.datetime.today(),
    "date": lambda: datetime.date.today(),
    "now of a subclass": lambda: Moment.now(),
    "now of a subclass in UTC": lambda: Moment.now(UTC),
    "date of a subclass": lambda: Day.today(),
    "log record": lambda: logging.makeLogRecord({}).created,
    "mail date": lambda: email.utils.formatdate(),
    "mail localtime": lambda: email.utils.localtime(),
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_every_clock_says_the_same_again(twice, reading):
    def program():
        return [reading() for _ in range(5)]

    then, now = twice(program)
    assert now == then
    assert list(map(type, now)) == list(map(type, then))
    assert twice.missed == 0


def test_while_recording_the_clocks_tell_the_real_time(twice):
    def program():
        before = clock.wall_ns()
        read = [
            time.time_ns(),
            round(time.time() * 1e9),
            round(datetime.datetime.now().timestamp() * 1e9),
            round(datetime.datetime.now(UTC).timestamp() * 1e9),
        ]
        after = clock.wall_ns()
        return all(before - 1000 <= one <= after + 1000 for one in read)

    assert twice(program, lambda: None)[0]


def test_utcnow_says_the_same_again_and_warns_as_it_did(twice):
    def program():
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            return [Moment.utcnow(), datetime.datetime.utcnow()], [
                str(one.message) for one in heard
            ]

    (then, warned), (now, warned_again) = twice(program)
    assert now == then
    assert [type(one) for one in now] == [Moment, datetime.datetime]
    assert now[0].tzinfo is None
    assert warned == warned_again
    assert len(warned) == (2 if sys.version_info >= (3, 12) else 0)


@pytest.fixture
def zone(monkeypatch):
    def move(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_a_tape_from_another_zone_tells_its_own_time(twice, zone):
    def program():
        return time.localtime(), datetime.datetime.now().astimezone().utcoffset(), time.tzname

    zone("Asia/Tokyo")
    with twice.recording():
        then = program()
    zone("America/New_York")
    with twice.serving():
        assert program() == then
        assert os.environ["TZ"] == "America/New_York"
    assert time.tzname == ("EST", "EDT")


def test_a_moment_in_the_hour_that_comes_twice_keeps_its_fold(twice, zone, monkeypatch):
    twice_past_two = datetime.datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    zone("Europe/Berlin")
    monkeypatch.setattr(clock, "wall_ns", lambda: int(twice_past_two.timestamp() * 1e9))
    then, now = twice(lambda: datetime.datetime.now().fold)
    assert then == now == 1


def test_wrong_arguments_are_refused_as_they_were(twice):
    def program():
        with pytest.raises(TypeError):
            datetime.datetime.now("UTC")
        with pytest.raises(TypeError):
            time.strftime(5)

    twice(program)


def test_a_moment_that_the_program_names_reads_no_clock(twice):
    twice(lambda: (time.gmtime(0), time.strftime("%Y", time.gmtime(0)), time.ctime(5)))
    assert twice.kinds() == {"zone"}


def test_isinstance_and_types_stay_what_they_were(twice):
    def program():
        assert type(datetime.datetime.now()) is datetime.datetime
        assert isinstance(Moment.now(), datetime.datetime)
        assert datetime.datetime is sys.modules["datetime"].datetime

    twice(program)


def test_a_module_that_copied_the_clock_before_is_found(twice, monkeypatch):
    program = ModuleType("program")
    program.__file__ = "/home/somebody/program.py"
    program.now = time.time
    monkeypatch.setitem(sys.modules, "program", program)
    original = time.time
    then, now = twice(lambda: [program.now() for _ in range(3)])
    assert now == then
    assert program.now is original


def test_a_builtin_in_a_class_body_is_no_method(twice):
    def program():
        class Timer:
            clock = time.perf_counter
            moment = time.localtime

        return Timer().clock(), Timer().moment()

    then, now = twice(program)
    assert now == then


def test_what_the_code_reads_where_it_did_not_then_follows_what_it_did(twice):
    def then():
        return time.time()

    def now():
        return then(), time.time(), datetime.datetime.now().timestamp(), time.time_ns() / 1e9

    taped, (first, *made) = twice(then, now)
    assert first == taped
    assert [taped, *made] == sorted([taped, *made])
    assert made[-1] < taped + 1
    assert twice.missed == 3


def test_uninstalling_puts_back_the_very_objects(twice):
    names = ("time", "time_ns", "localtime", "strftime", "monotonic", "clock_gettime")
    before = [getattr(time, name) for name in names]
    methods = [vars(datetime.datetime)["now"], vars(datetime.date)["today"]]
    twice(lambda: None)
    assert [getattr(time, name) for name in names] == before
    assert [vars(datetime.datetime)["now"], vars(datetime.date)["today"]] == methods
    assert datetime.datetime.now().year > 2000


def test_where_time_machine_is_loaded_the_clock_is_its_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "_time_machine", ModuleType("_time_machine"))
    patches = Patches()
    with pytest.raises(NotAsExpected, match="time-machine"):
        hook_time(time, patches)


def test_before_time_machine_is_loaded_the_clock_is_given_back(tmp_path):
    (tmp_path / "_time_machine.py").write_text("import time\nfound = time.time\n")
    program = (
        "import sys, time, datetime; sys.path.insert(0, sys.argv[1]); real = [time.time]\n"
        "from playhead.hooks.ambient.clock_reads import hook_time, hook_datetime\n"
        "from playhead.hooks.guest import Patches\n"
        "hook_time(time, Patches()); hook_datetime(datetime, Patches())\n"
        "assert time.time not in real\n"
        "import importlib.util; importlib.util.find_spec('_time_machine')\n"
        "assert time.time not in real, 'looking for it is not loading it'\n"
        "import _time_machine\n"
        "assert _time_machine.found in real\n"
        "assert type(vars(datetime.datetime)['now']).__name__ == 'classmethod_descriptor'\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
