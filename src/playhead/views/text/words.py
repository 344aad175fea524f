"""Numbers as people read them: durations, sizes, tokens, money, moments. Pure."""

from __future__ import annotations

from datetime import datetime, timezone


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m"


def took(nanoseconds: int | None) -> str:
    return duration(None if nanoseconds is None else nanoseconds / 1e9)


def count(number: int | None) -> str:
    """Exact: 8,412. Unknown is a dash, never 0."""
    return "–" if number is None else f"{number:,}"


def short(number: int | None) -> str:
    """For columns: 8.4k."""
    if number is None:
        return "–"
    if number < 10_000:
        return f"{number:,}"
    if number < 999_500:
        return f"{number / 1000:.0f}k" if number >= 100_000 else f"{number / 1000:.1f}k"
    return f"{number / 1e6:.1f}M"


def money(usd: float | None, *, at_least: bool = False) -> str:
    """`at_least`: some calls could not be priced."""
    if usd is None:
        return "–"
    shown = f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}".rstrip("0") if usd >= 0.0001 else f"${usd:.6f}"
    shown = shown if len(shown) > 4 else f"${usd:.2f}"
    return f"≥{shown}" if at_least else shown


def size(number: int) -> str:
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def ago(started_ns: int, now_ns: int) -> str:
    seconds = (now_ns - started_ns) / 1e9
    if seconds < 60:
        return "just now" if seconds < 5 else f"{seconds:.0f} s ago"
    if seconds < 3600:
        return f"{seconds / 60:.0f} m ago"
    if seconds < 86400:
        return f"{seconds / 3600:.0f} h ago"
    if seconds < 86400 * 30:
        return f"{seconds / 86400:.0f} d ago"
    return datetime.fromtimestamp(started_ns / 1e9, timezone.utc).strftime("%Y-%m-%d")


def moment(wall_ns: int) -> str:
    """Local time to the millisecond."""
    return datetime.fromtimestamp(wall_ns / 1e9).astimezone().strftime("%H:%M:%S.%f")[:-3]
