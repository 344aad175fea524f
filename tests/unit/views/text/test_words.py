import pytest

from playhead.views.text import words

MINUTE = 60_000_000_000


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.0, "0.0 ms"),
        (0.0042, "4.2 ms"),
        (0.042, "42 ms"),
        (0.42, "0.4 s"),
        (9.96, "10.0 s"),
        (59.97, "1 m 00 s"),
        (3599.6, "1 h 00 m"),
        (90_000, "25 h 00 m"),
        (400_000, "4 d 15 h"),
    ],
)
def test_durations(seconds, shown):
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(None, "–"), (0, "$0.00"), (0.00001, "$0.000010"), (0.002, "$0.0020"), (1234.5, "$1,234.50")],
)
def test_money(usd, shown):
    assert words.money(usd) == shown


def test_a_lower_bound_says_so():
    assert words.money(0.5, at_least=True) == "≥$0.5000"


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "–"), (0, "0"), (9999, "9,999"), (12_345, "12.3k"), (123_456, "123k"), (5e6, "5.0M")],
)
def test_short_numbers(number, shown):
    assert words.short(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2e12, "2.0 TB")]
)
def test_sizes(number, shown):
    assert words.size(number) == shown


@pytest.mark.parametrize(
    ("minutes", "shown"), [(-5, "0 s"), (0.5, "30 s"), (90, "1 h"), (60 * 24 * 40, "40 d")]
)
def test_ages(minutes, shown):
    assert words.age(0, int(minutes * MINUTE)) == shown


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "00:00.0"),
        (61_230_000_000, "01:01.2"),
        (3_661_000_000_000, "1:01:01.0"),
        (-5, "00:00.0"),
    ],
)
def test_positions(nanoseconds, shown):
    assert words.position(nanoseconds) == shown


@pytest.mark.parametrize("wall", [-(10**30), 0, 10**30])
def test_any_moment_that_a_tape_may_claim_can_be_said(wall):
    assert words.date(wall)
    assert words.moment(wall)
