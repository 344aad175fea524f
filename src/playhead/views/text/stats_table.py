"""Statistics of runs as a table with bars that fits 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from playhead.library.stats import Group, Stats
from playhead.tape.ending import GLYPHS
from playhead.views.text import words
from playhead.views.text.console import console, print_line, width_of
from playhead.views.text.safe import one_line

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_GAP = 2
_MAX_KEY = 28
_MIN_KEY = 10
_MAX_BAR = 24
_ORDER = ("ok", "failed", "interrupted", "running")


def print_stats(stats: Stats, *, limit: int | None) -> None:
    out = console()
    for line in stats_lines(stats, width_of(out), limit):
        print_line(out, line)


def stats_lines(stats: Stats, width: int, limit: int | None = None) -> Iterator[Text]:
    if not stats.total.runs:
        yield Text("No runs. Record one: playhead record -- python my_agent.py")
        return
    yield from _total(stats)
    shown = stats.groups[:limit]
    if shown:
        yield Text()
        yield from _table(stats.by, shown, width)
    left = len(stats.groups) - len(shown)
    if left:
        yield Text(f"… and {words.count(left)} more (--limit)", style="quiet")
    if stats.failing:
        yield Text()
        yield Text("tools that fail most", style="quiet")
        yield from _failing(stats)


def _total(stats: Stats) -> Iterator[Text]:
    total = stats.total
    noun = "run" if total.runs == 1 else "runs"
    line = Text.assemble((f"{words.count(total.runs)} {noun}", "name"))
    for status in _ORDER:
        if count := stats.statuses.get(status):
            line.append("  ")
            line.append(f"{GLYPHS[status]} {words.count(count)} {status}", style=status)
    if total.failed_turns:
        noun = "failed turn" if total.failed_turns == 1 else "failed turns"
        line.append(f"  {words.count(total.failed_turns)} {noun}", style="failed")
    yield line
    spent = []
    if total.tokens is not None:
        spent.append(f"{words.short(total.tokens)} tokens")
    if total.cost_usd is not None:
        spent.append(words.money(total.cost_usd))
    if total.times is not None:
        p50, p95, _ = (words.duration(one) for one in total.times)
        spent.append(f"half of the runs within {p50}, 95 % within {p95}")
    if spent:
        yield Text(" · ".join(spent), style="quiet")


def _table(by: str, groups: Sequence[Group], width: int) -> Iterator[Text]:
    is_calls = by in ("model", "tool")
    amount, unit = _bar_amount(groups)
    headings = [
        by.upper(),
        "CALLS" if is_calls else "RUNS",
        "FAILED",
        "TOKENS",
        "COST",
        "P50",
        "P95",
    ]
    rows = [_cells(group, is_calls=is_calls) for group in groups]
    keep = [at for at in range(len(headings)) if at < 3 or any(row[at] != "–" for row in rows)]
    widths = {at: max(len(headings[at]), *(len(row[at]) for row in rows)) for at in keep}
    figures = sum(widths.values()) - widths[0] + _GAP * (len(keep) - 1)
    widths[0] = min(widths[0], _MAX_KEY, max(_MIN_KEY, width - figures))
    room = min(_MAX_BAR, width - figures - widths[0] - _GAP)
    yield _line(headings, widths, room, unit.upper(), style="quiet")
    most = max((amount(group) for group in groups), default=0.0)
    for group, row in zip(groups, rows, strict=True):
        yield _line(
            row,
            widths,
            room,
            bar(amount(group), most, room),
            failed=bool(_failed(group, is_calls=is_calls)),
        )


def _bar_amount(groups: Sequence[Group]) -> tuple[Callable[[Group], float], str]:
    """Return the quantity of the bars: cost if known, else the number of calls or runs."""
    if any(group.cost_usd for group in groups):
        return lambda group: group.cost_usd or 0.0, "cost"
    if any(group.calls for group in groups):
        return lambda group: float(group.calls or 0), "calls"
    return lambda group: float(group.runs), "runs"


def _cells(group: Group, *, is_calls: bool) -> list[str]:
    p50, p95, _ = group.times or (None, None, None)
    return [
        one_line(group.key, _MAX_KEY),
        words.short(group.calls if is_calls else group.runs),
        _failed(group, is_calls=is_calls),
        words.short(group.tokens),
        words.money(group.cost_usd),
        words.duration(p50),
        words.duration(p95),
    ]


def _failed(group: Group, *, is_calls: bool) -> str:
    failed, of = (group.failures, group.calls) if is_calls else (group.failed_runs, group.runs)
    return f"{words.short(failed)} ({share(failed, of or 0)})" if failed else ""


def share(part: int, whole: int) -> str:
    """Return a percentage: `3 %`. More than zero but less than one is `<1 %`."""
    if not whole or not part:
        return "0 %"
    return "<1 %" if part * 100 < whole else f"{part * 100 // whole} %"


def bar(value: float, most: float, room: int) -> str:
    """Return a bar with a resolution of an eighth of a column. Values above zero are always visible."""
    if room <= 0 or most <= 0 or value <= 0:
        return ""
    eighths = max(1, round(value / most * room * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _line(
    cells: Sequence[str],
    widths: dict[int, int],
    room: int,
    last: str,
    *,
    style: str = "",
    failed: bool = False,
) -> Text:
    line = Text(style=style)
    for at, wide in widths.items():
        look = "failed" if at == 2 and failed else "name" if at == 0 and not style else ""
        text = Text(cells[at], style=look)
        if text.cell_len > wide:
            text.truncate(wide, overflow="ellipsis")
        space = " " * max(0, wide - text.cell_len)
        if at:
            line.append(" " * _GAP).append(space).append_text(text)
        else:
            line.append_text(text).append(space)
    if room > 3:
        line.append(" " * _GAP).append(last[:room], style=style or "tool")
    return line


def _failing(stats: Stats) -> Iterator[Text]:
    wide = min(_MAX_KEY, max(len(one.tool) for one in stats.failing))
    for one in stats.failing:
        yield Text.assemble(
            f"  {one_line(one.tool, wide):<{wide}}  ",
            (f"{words.count(one.failures)} of {words.count(one.calls)} calls", "failed"),
            (f"  {share(one.failures, one.calls)}", "quiet"),
        )
