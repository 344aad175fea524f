import pytest

from playhead.library.stats import Failing, Group, Stats
from playhead.views.text.stats_table import bar, share, stats_lines


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, ""), (1, "▏"), (100, "█" * 10), (50, "█" * 5), (55, "█████▌")],
)
def test_a_bar_is_as_long_as_its_value_and_the_least_is_seen(value, shown):
    assert bar(value, 100, 10) == shown


def test_there_is_no_bar_where_there_is_no_room_or_nothing():
    assert bar(5, 10, 0) == bar(5, 0, 10) == ""


def test_a_share_that_is_something_is_not_nothing():
    assert [share(*one) for one in ((0, 9), (1, 1000), (1, 4), (9, 9))] == [
        "0 %",
        "<1 %",
        "25 %",
        "100 %",
    ]


def stats(count, **more):
    groups = tuple(
        Group(
            key="a-model-with-a-very-long-name-\x1b[31m" + str(number),
            runs=10**6,
            failed_runs=0,
            calls=10**7,
            failures=10**6,
            tokens=10**10,
            cost_usd=12345.678,
            times=(3599.0, 86399.0, 1e6),
        )
        for number in range(count)
    )
    total = Group(key="", runs=10**6, failed_runs=1, tokens=10**10, cost_usd=1e6, times=(1, 2, 3))
    statuses = {"ok": 999_990, "failed": 10}
    return Stats(by="model", total=total, statuses=statuses, groups=groups, **more)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_of_large_figures_has_its_bars_only_where_they_fit(width):
    failing = (Failing(tool="x" * 100, failures=10**6, calls=10**7),)
    lines = [line.plain for line in stats_lines(stats(3, failing=failing), width)]
    rows = [line for line in lines if line.startswith("a-model")]
    assert len(rows) == 3
    assert all("█" in row for row in rows) == (width == 120)
    assert max(map(len, rows)) <= max(width, 80)
    assert "\x1b" not in "".join(lines)


def test_what_is_left_out_is_said():
    lines = [line.plain for line in stats_lines(stats(5), 80, limit=2)]
    assert "… and 3 more (--limit)" in lines
