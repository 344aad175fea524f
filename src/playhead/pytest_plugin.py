"""Playhead for pytest: replay a test that runs an agent, from a tape in a folder beside the test.

    @pytest.mark.playhead("refund_agent")
    def test_a_late_order_is_refunded(playhead_run):
        assert agent.ask("Where is my order?") == "Refunded."
        playhead_run.assert_tools("lookup", "refund")

`--playhead=replay` (default) answers from `tapes/refund_agent.tape.jsonl` and fails if there is no tape; `record`
records missing tapes; `refresh` records again; `off` does nothing. Knows pytest; `testing.taperun` implements taped
runs, and `testing.fenced_test` the fence around a replayed test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playhead.testing.taperun import TapeRun

_SUFFIX = ".tape.jsonl"
_MODES = ("replay", "record", "refresh", "off")
_FENCES = ("auto", "off", "required")
# The property of a replayed test's report, and the name of the setting.
_FENCE = "playhead_fence"
_RUN: pytest.StashKey[TapeRun] = pytest.StashKey()
# The duration of each phase of the test.
_SECONDS: pytest.StashKey[dict[str, float]] = pytest.StashKey()
# Absent in a fenced child. Otherwise: why the test is not in one.
_UNFENCED: pytest.StashKey[str] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("playhead")
    group.addoption(
        "--playhead",
        choices=_MODES,
        default=None,
        help="replay (default): tests marked playhead are answered from their tapes; record: missing tapes "
        "are recorded; refresh: all are recorded again; off: no tapes",
    )
    parser.addini("playhead", "the default of --playhead", default="replay")
    parser.addini("playhead_tapes", "folder of tapes, relative to the test's own", default="tapes")
    parser.addini(
        _FENCE,
        "auto (default): replayed tests run in a forked process without network, where that is possible; "
        "off: in pytest's own process; required: a test that cannot be fenced fails",
        default="auto",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "playhead(name=None, fenced=True): record this test's run, or replay it from its tape",
    )
    if config.getini(_FENCE) not in _FENCES:
        raise pytest.UsageError(f"{_FENCE} must be one of {', '.join(_FENCES)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Replay a marked test in a forked child that has no network; None: pytest runs it as usual."""
    marker = item.get_closest_marker("playhead")
    if marker is None or _mode(item) == "off" or _records(item, marker):
        return None
    # Not above: pytest loads this file in every project that has Playhead installed.
    from playhead.errors import NoFence
    from playhead.testing import fenced_test

    if item.config.getini(_FENCE) == "off" or marker.kwargs.get("fenced") is False:
        item.stash[_UNFENCED] = "switched off"
        return None
    try:
        fenced_test.run(item, nextitem)
    except NoFence as error:
        item.stash[_UNFENCED] = str(error)
        return None
    return True


@pytest.fixture(autouse=True)
def _playhead_world(request: pytest.FixtureRequest) -> Iterator[TapeRun | None]:
    """Record or replay the test. Autouse, so that the tape is active before the test's own fixtures make calls."""
    item: pytest.Item = request.node
    marker = item.get_closest_marker("playhead")
    if marker is None or _mode(item) == "off":
        yield None
        return
    with _world(item, marker) as run:
        item.stash[_RUN] = run
        yield run


@pytest.fixture
def playhead_run(_playhead_world: TapeRun | None) -> TapeRun:
    """Return the run of this test: tools called, cost, tokens, steps."""
    if _playhead_world is None:
        pytest.fail(
            "playhead_run needs @pytest.mark.playhead on the test, and does not work with --playhead=off",
            pytrace=False,
        )
    return _playhead_world


def _timed(item: pytest.Item, phase: str) -> Generator[None, Any, Any]:
    """Measure a phase by the real clock: inside the world of a tape, pytest's own clock shows taped time."""
    if item.get_closest_marker("playhead") is None:
        return (yield)
    from playhead.clock import mono_ns

    begin = mono_ns()
    try:
        return (yield)
    finally:
        item.stash.setdefault(_SECONDS, {})[phase] = (mono_ns() - begin) / 1e9


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _timed(item, "setup"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _timed(item, "teardown"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    report = yield
    seconds = item.stash.get(_SECONDS, {}).get(call.when)
    if seconds is not None:
        report.duration = seconds
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that differs from its tape with the divergence, even if the test itself caught it."""
    run = item.stash.get(_RUN, None)
    if run is None:
        return (yield)
    result = None
    try:
        result = yield
    except Exception:
        run.failed = True
        if not run.partings:
            raise
    # Outside of the `except` block: pytest would print the divergence twice, as the cause and as the failure.
    if run.partings:
        pytest.fail(_shown(run, item.nodeid), pytrace=False)
    return result


def _shown(run: TapeRun, test: str) -> str:
    """Return the first divergence as a diff: pytest colours lines that begin with - and +."""
    first = run.partings[0]
    # The advice of a divergence names options of `playhead replay`, which a test does not have.
    lines = [str(replace(first, advice=None))]
    if first.nearest is not None:
        for one in first.nearest.differences[:10]:
            lines += [f"  {one.path}", f"    - {one.taped!r}"[:2000], f"    + {one.asked!r}"[:2000]]
    if more := len(run.partings) - 1:
        lines.append(f"… and {more} more difference{'' if more == 1 else 's'}")
    lines.append(
        f"If the change is intended, record the test again: pytest --playhead=refresh {test}\n"
        "A field that changes in every run can be ignored in playhead.toml, under [replay.ignore]."
    )
    return "\n".join(lines)


def _mode(item: pytest.Item) -> str:
    return str(item.config.getoption("--playhead") or item.config.getini("playhead"))


def _records(item: pytest.Item, marker: pytest.Mark) -> bool:
    mode = _mode(item)
    return mode == "refresh" or (mode == "record" and not tape_of(item, marker).exists())


@contextmanager
def _world(item: pytest.Item, marker: pytest.Mark) -> Iterator[TapeRun]:
    # Not above: pytest loads this file in every project that has Playhead installed.
    from playhead import config as settings_of
    from playhead.replay.matching.ignore import rules_from
    from playhead.testing.taperun import recording_to, replaying

    path = tape_of(item, marker)
    rules = rules_from(
        settings_of.load(Path(item.path).parent).sections.get("replay", {}).get("ignore")
    )
    if _records(item, marker):
        with recording_to(path, name=path.name[: -len(_SUFFIX)]) as run:
            yield run
        return
    if not path.exists():
        pytest.fail(
            f"{path} does not exist. Record it: pytest --playhead=record {item.nodeid}",
            pytrace=False,
        )
    why = item.stash.get(_UNFENCED, None)
    if why is not None and item.config.getini(_FENCE) == "required":
        pytest.fail(f"{_FENCE} is required, and this test has no fence: {why}", pytrace=False)
    item.user_properties.append((_FENCE, "fenced" if why is None else f"unfenced: {why}"))
    with replaying(path, ignore=rules) as run:
        yield run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests were replayed without the kernel's fence, and why. Their reports have it as a property,
    which is in JUnit's XML, too.
    """
    reports = [one for those in terminalreporter.stats.values() for one in those]
    # Exactly this class: the reports of subtests belong to another one.
    called = (one for one in reports if type(one) is pytest.TestReport and one.when == "call")
    fences = [str(value) for one in called for name, value in one.user_properties if name == _FENCE]
    reasons = Counter(one.partition(": ")[2] for one in fences if one.startswith("unfenced"))
    for why, count in reasons.items():
        tests = "1 test" if count == 1 else f"{count} tests"
        terminalreporter.write_line(
            f"playhead: {tests} replayed unfenced ({why}): only calls that hooks saw were stopped"
        )


def tape_of(item: pytest.Item, marker: pytest.Mark) -> Path:
    """Return the tape of a test, named by the mark, else after the test; parametrized tests have a tape each."""
    name = marker.args[0] if marker.args else re.sub(r"[^\w.-]+", "-", item.name).strip("-")
    if marker.args and "[" in item.name:
        name += "-" + re.sub(r"[^\w.-]+", "-", item.name.partition("[")[2]).strip("-")
    return Path(item.path).parent / str(item.config.getini("playhead_tapes")) / f"{name}{_SUFFIX}"
