"""Run one test in a forked child that the kernel keeps from the network and the files, as pytest-forked runs tests in
children. Knows pytest's protocol of a test; does not know tapes.

The child sets up the fixtures of the test, runs it and tears them down. Fixtures of a wider scope are set up in
pytest's own process before the fork, and torn down there: the child has copies of them. The reports, the warnings and
the measured lines come back as JSON. Everything else that the test changes in memory is lost with the child.

Not only the call: fixtures that build a client or warm a cache use the network as well.
"""

from __future__ import annotations

import builtins
import copy
import json
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from playhead.errors import NoFence
from playhead.launch.replaying.fenced_child import FencedChildDied, in_fenced_child, why_not


def run(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run the test and log its reports. NoFence: it is not possible, with the reason; nothing was run."""
    if why := why_not() or _why_not(item):
        raise NoFence(why)
    # If a fixture of a wider scope fails here, it fails again, and is reported, when pytest runs the test as usual.
    if not _set_up_wider_fixtures(item):
        raise NoFence("a fixture of a wider scope failed")
    known = frozenset(sys.modules)
    try:
        result = json.loads(in_fenced_child(lambda: _run_here(item, known), keep=_kept(item)))
    except FencedChildDied as error:
        result = {"reports": [_died(item, str(error))]}
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for one in result["reports"]:
        hook.pytest_runtest_logreport(report=_report(item, one))
    _tear_down_wider_fixtures(item, nextitem)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    _warn_again(result.get("warnings", ()))
    _add_measured(result.get("lines"))
    _import_own(result.get("modules", ()))
    if "interrupted" in result:
        raise KeyboardInterrupt
    if "exit" in result:
        pytest.exit(result["exit"])


def _report(item: pytest.Item, data: dict[str, Any]) -> Any:
    """Restore the report: JSON has no tuples, and plugins expect them."""
    if isinstance(data["longrepr"], list):  # the place and the reason of a skipped test
        data["longrepr"] = tuple(data["longrepr"])
    for name in ("user_properties", "sections", "location"):
        kind = tuple if name == "location" else list
        pairs = (tuple(one) if isinstance(one, list) else one for one in data.get(name, ()))
        data[name] = kind(pairs)
    return item.config.hook.pytest_report_from_serializable(config=item.config, data=data)


def _why_not(item: pytest.Item) -> str | None:
    options = item.config.option
    if getattr(options, "usepdb", False) or getattr(options, "trace", False):
        return "a debugger needs pytest's own process"
    known = hasattr(item.session, "_setupstate") and hasattr(item, "_fixtureinfo")
    return None if known else "this kind of test is not known"


def _set_up_wider_fixtures(item: Any) -> bool:
    """Set up the fixtures that later tests share in this process, in pytest's order: widest scope first."""
    # pytest has no public function for this.
    setups = item.session._setupstate  # noqa: SLF001
    known = item._fixtureinfo.name2fixturedefs  # noqa: SLF001
    try:
        setups.setup(item.parent)
        # Fixtures can be requested only while the test itself is being set up.
        setups.stack[item] = ([], None)
        for name in item.fixturenames:
            if name in known and known[name][-1].scope != "function":
                item._request.getfixturevalue(name)  # noqa: SLF001
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise
    except BaseException:  # noqa: BLE001  also `pytest.skip` and `pytest.fail`
        return False
    finally:
        setups.stack.pop(item, None)
    return True


def _tear_down_wider_fixtures(item: Any, nextitem: pytest.Item | None) -> None:
    ending = None if item.session.shouldfail or item.session.shouldstop else nextitem
    call = pytest.CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(ending),  # noqa: SLF001
        when="teardown",
    )
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)


def _kept(item: pytest.Item) -> list[str]:
    """Return the folder of `tmp_path`, which stays real: people look at it after a failure."""
    factory = getattr(item.config, "_tmp_path_factory", None)
    names: Any = getattr(item, "fixturenames", ())
    return [str(factory.getbasetemp())] if factory is not None and "tmp_path" in names else []


def _run_here(item: pytest.Item, known: frozenset[str]) -> str:
    """Run the test in the child. Return everything that pytest's own process must know. `known`: its imported
    modules.
    """
    result: dict[str, Any] = {"reports": []}
    # Subtests log reports of their own while the test runs. pytest's own process shows them.
    logged = LoggedReports()
    item.config.pluginmanager.register(logged)
    writer: Any = item.config.get_terminal_writer()
    writer._file = Path(os.devnull).open("w")  # noqa: SIM115, SLF001  until the child ends
    # Pass a sibling as the next test: the child tears down only what belongs to this test alone.
    sibling = copy.copy(item)
    with warnings.catch_warnings(record=True) as caught:
        try:
            reports = runtestprotocol(item, log=False, nextitem=sibling)
        except KeyboardInterrupt:
            return json.dumps({**result, "interrupted": True})
        except pytest.exit.Exception as error:
            return json.dumps({**result, "exit": str(error)})
    result["reports"] = [
        item.config.hook.pytest_report_to_serializable(config=item.config, report=one)
        for one in (*logged.reports, *reports)
    ]
    result["warnings"] = [
        [str(one.message), one.category.__name__, one.filename, one.lineno] for one in caught
    ]
    result["lines"] = _measured()
    result["modules"] = [one for one in sys.modules if one not in known]
    return json.dumps(result, default=repr)


class LoggedReports:
    """A plugin that keeps the reports that are logged."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.reports.append(report)


def _died(item: pytest.Item, why: str) -> Any:
    report = pytest.TestReport(
        item.nodeid, item.location, {}, "failed", f"The test ended its process: {why}.", "call"
    )
    return item.config.hook.pytest_report_to_serializable(config=item.config, report=report)


def _import_own(names: Any) -> None:
    """Import Playhead's modules that the child needed. Without this every child imports them: half a second a test."""
    for name in names:
        if name.startswith("playhead."):
            with suppress(Exception):
                import_module(name)


def _warn_again(caught: Any) -> None:
    """Issue the warnings again, for pytest's summary. The class is looked up by name among the built-in ones."""
    for text, name, path, line in caught:
        category = getattr(builtins, name, UserWarning)
        is_warning = isinstance(category, type) and issubclass(category, Warning)
        warnings.warn_explicit(text, category if is_warning else UserWarning, path, line)


def _coverage() -> Any:
    module: Any = sys.modules.get("coverage")
    return None if module is None else module.Coverage.current()


def _measured() -> dict[str, Any] | None:
    """The lines, or the arcs, that `coverage` measured in the child."""
    measuring = _coverage()
    if measuring is None:
        return None
    data = measuring.get_data()  # a new data file: coverage has noticed the fork
    kind = "arcs" if data.has_arcs() else "lines"
    return {"kind": kind, "files": {one: getattr(data, kind)(one) for one in data.measured_files()}}


def _add_measured(lines: dict[str, Any] | None) -> None:
    measuring = _coverage()
    if measuring is None or lines is None:
        return
    data = measuring.get_data()
    if lines["kind"] == "arcs":
        data.add_arcs({one: [tuple(arc) for arc in arcs] for one, arcs in lines["files"].items()})
    else:
        data.add_lines(lines["files"])
