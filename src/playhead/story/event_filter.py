"""Select events by kind, boundary, lane, who and seq. Pure; knows events, not tapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from playhead import events
from playhead.errors import UsageError
from playhead.events import Event

_END = re.compile(r"(?:(?P<segment>[^:]+):)?(?P<seq>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeqRange:
    """Seqs of one segment; None as a segment: the run's own process."""

    segment: str | None = None
    first: int = 0
    last: int | None = None

    def holds(self, event: Event, own: frozenset[str]) -> bool:
        if self.segment is None:
            if event.segment not in own:
                return False
        elif event.segment != self.segment:
            return False
        return event.seq >= self.first and (self.last is None or event.seq <= self.last)


def parse_range(text: str) -> SeqRange:
    """`17`, `10..20`, `10..`, `..20`, `4711:10..20`."""
    first, dots, last = text.strip().partition("..")
    begin, end = _end(first, text), _end(last, text)
    if not (begin or end) or not (dots or begin):
        raise _wrong(text)
    names = {name for name, _ in filter(None, (begin, end)) if name is not None}
    if len(names) > 1:
        raise UsageError(f"{text!r} goes from one segment to another; name a range in one of them.")
    low = begin[1] if begin else 0
    high = (end[1] if end else None) if dots else low
    return SeqRange(segment=names.pop() if names else None, first=low, last=high)


def _end(text: str, whole: str) -> tuple[str | None, int] | None:
    if not text:
        return None
    hit = _END.fullmatch(text)
    if hit is None:
        raise _wrong(whole)
    return hit["segment"], int(hit["seq"])


def _wrong(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a range of events; expected 17, 10..20, 10.., ..20 or SEGMENT:10..20."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Criteria for events; empty criteria select everything. Kinds, lanes and who are globs; one must match."""

    kinds: tuple[str, ...] = ()
    boundaries: frozenset[str] = frozenset()
    lanes: tuple[str, ...] = ()
    who: tuple[str, ...] = ()
    seqs: SeqRange | None = None


class EventSelection:
    """Applies a filter in the order of the tape: the chunks and the outcome of a selected call are selected too."""

    def __init__(self, wanted: EventFilter, own: frozenset[str]) -> None:
        self._wanted = wanted
        self._own = own
        self._calls: set[str] = set()

    def takes(self, event: Event) -> bool:
        wanted = self._wanted
        if wanted.boundaries and not self._crosses(event):
            return False
        if wanted.kinds and not any(fnmatchcase(event.kind, glob) for glob in wanted.kinds):
            return False
        if wanted.lanes and not any(fnmatchcase(event.lane, glob) for glob in wanted.lanes):
            return False
        if wanted.who and not any(fnmatchcase(event.who or "", glob) for glob in wanted.who):
            return False
        return wanted.seqs is None or wanted.seqs.holds(event, self._own)

    def _crosses(self, event: Event) -> bool:
        data = event.data if isinstance(event.data, dict) else {}
        if not event.ours:
            return False
        if event.kind == events.CALL:
            if data.get("boundary") not in self._wanted.boundaries:
                return False
            self._calls.add(event.ref)
            return True
        if event.kind in (events.CHUNK, events.OUTCOME):
            return event.absolute(data.get("call")) in self._calls
        return False
