"""Compute how often replays pass: the rate, its confidence interval, and the chance of k passes in a row. Pure.

A live model answers differently each time, so a single pass proves little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb, sqrt
from typing import Any

# The quantile of the normal distribution for an interval of 95 %.
_Z = 1.959963984540054
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRate:
    """`low` and `high` are the 95 % interval. `pass_hat[k-1]` is the chance that k replays in a row pass."""

    passes: int
    replays: int
    rate: float
    low: float
    high: float
    pass_hat: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        said = f"pass rate {self.rate:.1%} (95 % interval {self.low:.1%} to {self.high:.1%})"
        last = len(self.pass_hat)
        return f"{said}, pass^{last} {self.pass_hat[-1]:.1%}" if last > 1 else said


def pass_rate_of(tapes: Sequence[tuple[int, int]]) -> PassRate | None:
    """Return the rate over (passes, replays) of each tape. None: nothing was replayed.

    pass^k is the mean over the tapes, for every k up to the smallest number of replays of a tape.
    """
    counted = [(passes, replays) for passes, replays in tapes if replays]
    if not counted:
        return None
    passes, replays = (sum(column) for column in zip(*counted, strict=True))
    low, high = wilson(passes, replays)
    most = min(tried for _, tried in counted)
    hats = [
        sum(pass_hat(won, tried, k) for won, tried in counted) / len(counted)
        for k in range(1, most + 1)
    ]
    return PassRate(
        passes=passes,
        replays=replays,
        rate=round(passes / replays, _DIGITS),
        low=round(low, _DIGITS),
        high=round(high, _DIGITS),
        pass_hat=tuple(round(one, _DIGITS) for one in hats),
    )


def wilson(passes: int, replays: int) -> tuple[float, float]:
    """Return the Wilson score interval. It has a width even if every replay passes, or none does."""
    rate, square = passes / replays, _Z * _Z
    middle = (rate + square / (2 * replays)) / (1 + square / replays)
    spread = rate * (1 - rate) / replays + square / (4 * replays * replays)
    half = _Z * sqrt(spread) / (1 + square / replays)
    # Rounding errors must not put 0 % or 100 % outside the interval.
    low = 0.0 if passes == 0 else middle - half
    return low, 1.0 if passes == replays else middle + half


def pass_hat(passes: int, replays: int, k: int) -> float:
    """Return the chance that k replays, drawn from these without replacement, all passed."""
    return comb(passes, k) / comb(replays, k)
