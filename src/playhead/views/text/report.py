"""The report of a replay on a terminal: the verdict, the coverage, then each divergence. Also the table
of --dry-run. Knows reports; not how they are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from playhead.replay.report.verdict import RUNGS, Report
from playhead.views.text import words
from playhead.views.text.console import console, width_of
from playhead.views.text.divergence_lines import divergence_lines
from playhead.views.text.safe import one_line

if TYPE_CHECKING:
    from playhead.replay.modes.fork import Prefix
    from playhead.replay.report.forecast import Forecast

_MOST_SHOWN = 5
_MOST_EXTRAS = 20


def print_report(report: Report) -> None:
    """Print a report to stderr, because stdout belongs to the program."""
    out = console(stderr=True)
    recorded, replayed = report.duration_s.get("recorded"), report.duration_s.get("replayed")
    what = f"replay of {report.run}"
    if report.forked_at is not None:
        what = f"{report.replay}, from step {report.forked_at} of {report.run}"
    if report.request is not None:
        what = one_line(f"request {report.request['number']} of {report.run}", 100)
    out.print(
        Text.assemble(
            _verdict(report),
            f" · {what} · {words.duration(replayed)} instead of {words.duration(recorded)}",
            "" if report.order == "strict" else f" · {report.order}",
        )
    )
    if report.request is not None:
        out.print(Text(_request_line(report.request), style="quiet"))
    if started := _start_up(report):
        out.print(Text(started, style="quiet"))
    if report.coverage:
        out.print(_coverage(report))
    for line in _extras(report):
        out.print(line)
    shown = [one for one in report.divergences if not one.get("consequence")]
    advised: set[str] = set()
    for number, one in enumerate(shown[:_MOST_SHOWN], 1):
        out.print()
        advice = str(one.get("advice"))
        for line in divergence_lines(one, out.width, number=number, advice=advice not in advised):
            out.print(line)
        advised.add(advice)
    more = len(shown) - _MOST_SHOWN
    if more > 0:
        out.print(Text(f"… and {more} more; --report FILE.json has all of them", style="quiet"))
    if not_made := [one for one in report.divergences if one.get("consequence")]:
        out.print(_not_made(not_made))
    for note in (*_file_lines(report), *report.notes):
        # Long enough for three names and the command that follows them: a shortened command cannot be copied.
        out.print(Text(one_line(note, 400), style="quiet"))


def _request_line(request: dict[str, Any]) -> str:
    """Return what a replay of one request has compared."""
    calls = int(request["calls"])
    made = f"its {calls:,} calls" if calls != 1 else "its one call"
    answer = "the answer" if request["answered"] else "the recorded part of the answer"
    return one_line(
        f"{request['name']}: {answer} and {made if calls else 'that it makes no call'} were compared; the "
        "output, files, state and exit code of the run were not",
        400,
    )


def _start_up(report: Report) -> str:
    """Return how much of a replay's time the program needed to start, which no replay can shorten."""
    start, took = report.start_up_s.get("replayed"), report.duration_s.get("replayed")
    if start is None or took is None or not words.is_long_start(start * 1e9, took * 1e9):
        return ""
    return f"the program itself took {words.duration(start)} to start, before its first call"


def _file_lines(report: Report) -> list[str]:
    """Return the lines about files, if the recorded run changed any."""
    files = report.files
    if files is None:
        return []
    lines = []
    if report.forked_at is not None:
        lines.append(f"files: as they were before step {report.forked_at}, restored from the tape")
    elif files.changed and files.same:
        missing = f"; {files.gaps:,} more changes were not recorded" if files.gaps else ""
        lines.append(f"files: identical ({files.changed:,} changed by the run{missing})")
    elif files.same is None and not report.live:
        lines.append(f"files: not compared ({files.why})")
    if files.code:
        lines.append(f"code: differs from the recording in {_named(files.code)}")
    if files.not_restored:
        lines.append(
            f"not restored: {_named(files.not_restored)}. The content is not on the tape (secret or large); "
            "this replay used the current files, if there are any."
        )
    if files.unused_edits:
        lines.append(
            f"not used: {_named(files.unused_edits)} changed since the recording; this run had the "
            f"recorded files. {_in_place_advice(report)}"
        )
    return lines


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(one_line(one, 40) for one in paths[:3]) + more


def _in_place_advice(report: Report) -> str:
    if report.forked_at is not None:
        return f"To replay with the current files: `playhead replay {report.run} --in-place`."
    return "To replay with the current files: --in-place."


def _verdict(report: Report) -> tuple[str, str]:
    same = report.verdict == "identical"
    if report.recovered is not None and report.faults:
        return ("✓ recovered", "ok") if report.recovered else ("✗ did not recover", "failed")
    if report.recovered is not None:
        return "! no fault fired", "interrupted"
    if report.verdict == "changed":
        blocked = len(report.blocked) + sum(
            one.get("kind") == "missed" for one in report.divergences
        )
        noun = "call" if blocked == 1 else "calls"
        cut = f", {blocked} {noun} blocked" if blocked else ""
        what = "fork" if report.forked_at is not None else f"{', '.join(report.live)} live"
        return f"≠ changed ({what}{cut})", "failed" if blocked else "running"
    if report.forked_at is not None:
        return ("✓ forked", "ok") if same else ("✗ diverged", "failed")
    if report.live and same:
        return f"✓ as taped, with {', '.join(report.live)} live", "ok"
    if report.verdict == "unproven":
        return "? unproven: no difference, but no fence", "interrupted"
    return ("✓ identical", "ok") if same else ("✗ diverged", "failed")


def _extras(report: Report) -> list[Text]:
    """Return a line for each call that was not simply served from the tape."""
    rows = [("fault", "failed", f"{one['fault']} at {_place(one)}") for one in report.faults]
    rows += [
        (_score(one), "interrupted", f"{_place(one)} got the answer of taped call {one['of']}")
        for one in report.inexact
    ]
    rows += [
        ("blocked", "failed", f"{_place(one)} was not run: {one['effect']}")
        for one in report.blocked
    ]
    rows += [
        ("allowed", "interrupted", f"{_place(one)} ran for real: {one['effect'] or 'irreversible'}")
        for one in report.allowed
    ]
    lines = [
        Text.assemble((f"{mark:>10}", style), f"  {text}")
        for mark, style, text in rows[:_MOST_EXTRAS]
    ]
    if len(rows) > _MOST_EXTRAS:
        lines.append(Text(f"{'':>10}  … and {len(rows) - _MOST_EXTRAS} more", style="quiet"))
    return lines


def _score(one: dict[str, Any]) -> str:
    return f"{float(one['score']):.2f}" if one["rung"] == "fuzzy" else str(one["rung"])


def _place(one: dict[str, Any]) -> str:
    return one_line(f"step {one['step']}: {one['boundary']} {one['name']}", 100)


def fork_state_line(prefix: Prefix) -> str:
    """Return whether the state before a fork is that of the recording."""
    if prefix.faithful and prefix.restored:
        return (
            f"Faithful: the files are those of the recording after its first {prefix.calls} calls. What "
            "earlier processes did over the network is not repeated."
        )
    if prefix.faithful:
        return f"Faithful: the {prefix.calls} calls before the fork only read."
    named = ", ".join(one_line(one, 40) for one in prefix.writes[:3])
    more = f" and {len(prefix.writes) - 3} more" if len(prefix.writes) > 3 else ""
    return f"Simulated: calls before the fork had side effects, which were not repeated ({named}{more})."


def _coverage(report: Report) -> Table:
    shown = [
        rung
        for rung in (*RUNGS, "side", "fault")
        if any(row.get(rung) for row in report.coverage.values())
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="quiet")
    table.add_column("")
    for rung in shown:
        table.add_column(rung, justify="right")
    for boundary, row in report.coverage.items():
        cells = [
            Text(str(row.get(rung) or "·"), style=_style(rung, row.get(rung) or 0))
            for rung in shown
        ]
        table.add_row(Text(boundary, style=boundary), *cells)
    return table


def _style(rung: str, number: int) -> str:
    if not number:
        return "quiet"
    return (
        "failed"
        if rung in ("missed", "unused", "blocked", "fault")
        else "ok"
        if rung == "exact"
        else "interrupted"
    )


def _not_made(calls: Sequence[dict[str, Any]]) -> Text:
    """Return one line about the calls that a program did not make because it had diverged before."""
    named = [one_line(f"{one.get('boundary')} {one.get('name')}", 60) for one in calls[:3]]
    more = f" and {len(calls) - 3:,} more" if len(calls) > 3 else ""
    noun = "taped call was" if len(calls) == 1 else f"{len(calls):,} taped calls were"
    prefix = "1 " if len(calls) == 1 else ""
    return Text(
        f"\n{prefix}{noun} not made because of that: {', '.join(named)}{more}", style="quiet"
    )


# The columns of a forecast without the names, with the spaces between them.
_FORECAST_WIDTH = 58
_STYLES = {"tape": "ok", "live": "interrupted", "allowed": "interrupted", "blocked": "failed"}


def print_forecast(rows: Sequence[Forecast]) -> None:
    out = console()
    taped = sum(row.calls for row in rows if row.answer == "tape")
    live = sum(row.calls for row in rows if row.answer == "live")
    noun = "call" if taped == 1 else "calls"
    out.print(Text(f"{taped} {noun} from the tape, {live} live; nothing was run"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="quiet")
    # Only names are shortened: the other columns decide what the user does next.
    room = max(12, width_of(out) - _FORECAST_WIDTH)
    for heading in ("", "name", "calls", "answered by", "if missing", "effect"):
        justify: JustifyMethod = "right" if heading == "calls" else "left"
        table.add_column(heading, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row.boundary, style=row.boundary),
            Text(one_line(row.name, min(room, 40))),
            Text(str(row.calls)),
            Text(row.answer, style=_STYLES.get(row.answer, "")),
            Text(row.miss, style=_STYLES.get(row.miss, "failed")),
            Text(row.effect or "", style="quiet"),
        )
    if rows:
        out.print(table)
