"""Turn an event into the bytes of its line. `append` is the only way onto a tape.

Knows values, levels, redaction and the order of an event's members; does not know why an event happened,
nor what to do when the disk refuses it (see `recorder`).

The caches in here hold redacted JSON. They are replaced, never updated, when a new secret is learnt, and
nothing outside this module sees them.
"""

from __future__ import annotations

from playhead import clock
from playhead.clock import mono_ns, thread_id, wall_ns
from playhead.encoding import jsonbytes
from playhead.encoding.jsonbytes import quote
from playhead.encoding.plain import Keys, is_plain
from playhead.encoding.values import freeze, safe_str
from playhead.events import KINDS
from playhead.host import native_core
from playhead.host.later import Later
from playhead.recording import lanes
from playhead.redact import Redactor
from playhead.redact.spans import is_confirmed
from playhead.tape.blobs import THRESHOLD, spill
from playhead.tape.writer import SegmentWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Protocol

    from playhead.encoding import levels
    from playhead.events import Level, Ref

    class Writer(Protocol):
        """Appends a line to a segment."""

        @property
        def name(self) -> str: ...

        @property
        def append(self) -> Callable[..., int]:
            """Append an event: the kind, the members and the data as JSON, and for a dated event also its times."""
else:
    enum = Later("enum")  # loaded when an enum value occurs, not at every start
    levels = Later("playhead.encoding.levels")  # most runs keep everything


# Why `encode` may refuse a value that looked plain: lone surrogates, keys of a subclass of `str`, a dict
# that another thread is changing.
_UNPLAIN = (ValueError, TypeError, RecursionError, RuntimeError)
_ANY_SIZE = 1 << 62
_LONGEST_REMEMBERED = 200
_MOST_REMEMBERED = 10_000

# Looked up once: every event needs them.
_current_lane, _enclosing = lanes.current.get, lanes.enclosing.get


class NewEvent:
    """An event before the tape has given it a number and a time."""

    __slots__ = ("at", "cause", "data", "kind", "parent", "redacted", "user", "who", "why")

    def __init__(  # noqa: PLR0917  (data; by position where every microsecond counts)
        self,
        kind: str,
        data: Any,
        at: str = '""',
        parent: Ref | None = None,
        cause: Ref | None = None,
        redacted: bool | str = False,  # noqa: FBT001, FBT002  (as above)
        user: bool = False,  # noqa: FBT001, FBT002  (as above)
        who: str | None = None,
        why: str | None = None,
    ) -> None:
        """`at` is a code location as JSON (see `where`). Without `parent` the event belongs to the enclosing call or
        turn. `redacted`: the data is final JSON without secrets; a name: only that member is. `user`: the kind and the
        data are the program's own.
        """
        self.kind = kind
        self.data = data
        self.at = at
        self.parent = parent
        self.cause = cause
        self.redacted = redacted
        self.user = user
        self.who = who
        self.why = why


class DatedEvent(NewEvent):
    """An event that happened at another time and in no lane of this process: a step of a shell script's session, or a
    line of a conversation that another tool recorded. A time that is None means now.
    """

    __slots__ = ("lane", "mono", "wall")

    def __init__(
        self,
        kind: str,
        data: Any,
        *,
        parent: Ref | None = 0,
        cause: Ref | None = None,
        redacted: bool = False,
        user: bool = False,
        lane: str = "main",
        wall: int | None = None,
        mono: int | None = None,
    ) -> None:
        super().__init__(kind, data, '""', parent, cause, redacted, user)
        self.lane = lane
        self.wall = wall
        self.mono = mono


class OpenSegment:
    """A segment that is being written: of one process, or of several processes that write in turn. Holds how its events
    are encoded and the writer. The attributes without an underscore are for `append`.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        who: str,
        level: Level = "full",
        redactor: Redactor | None = None,
        may_import: bool = False,
    ) -> None:
        # Set before the first event.
        self.writer: Writer = NotImplemented
        self.who = who
        self._folder = folder
        self._level = level
        self._redactor = redactor
        # The process and its segment, as members of every event; and the root event of the segment.
        self.ids = ""
        self.root: Ref = 0
        self.names = Names(redactor)
        self._keys = Keys() if redactor is None else redactor.safe_keys
        self._suspects = None if redactor is None else redactor.suspicion()
        native_core.load()
        self._search = self._native_search()
        # What the native core needs to write an event in one step; None: Python writes the events.
        self.native: Any = None
        self._json = jsonbytes.fastest(may_import=may_import)
        self._is_fastest = False

    def write_to(self, writer: Writer) -> None:
        """Write the following events for this process, to the segment of this writer."""
        self.writer = writer
        pid = clock.pid()
        self.ids = f'"pid":{pid},'
        if writer.name != str(pid):
            self.ids += f'"seg":{quote(writer.name)},'
        self._prepare_core()

    def _prepare_core(self) -> None:
        """Give the native core what it needs for the following events. `append` describes the same in Python."""
        core, search, writer = native_core.core, self._search, self.writer
        self.native = None
        if core is None or search is None or self._level != "full":
            return
        if type(writer) is SegmentWriter:
            clean = str if self._redactor is None else self._redactor.clean_suspect
            names, keys, lock = self.names, self._keys, writer.lock
            parts = (
                *(writer, names, keys, self.who, self.ids, self.root, *search, clean, KINDS),
                *(_current_lane, _enclosing, thread_id, wall_ns, mono_ns),
                *(lock.acquire, lock.release, writer.write_deferred, writer.settle),
            )
            self.native = core.tape(parts, THRESHOLD)

    def encode_data(self, kind: str, data: Any, user: bool, redacted: bool | str) -> bytes:  # noqa: FBT001  (hot)
        """Return the data as JSON: reduced to the level, frozen, redacted, its large parts in blobs."""
        encode = self._json
        if self._level != "full":
            ours = kind in KINDS and not user
            data = levels.reduce(self._level, kind, data, ours=ours, frozen=self.frozen)
        elif redacted is True:
            encoded = encode(data)
            return encoded if len(encoded) <= THRESHOLD else spill(self._folder, data, encode)
        found = self._plain(data, THRESHOLD, redacted)
        if found is not None and not found[1]:
            return found[0]
        frozen = self._settled(data) if found is None else self._clean(data, redacted)
        if _is_large(frozen):
            return spill(self._folder, frozen, encode)
        encoded = encode(frozen)
        return encoded if len(encoded) <= THRESHOLD else spill(self._folder, frozen, encode)

    def frozen(self, value: Any) -> Any:
        """Return `value` in its form on the tape, frozen and redacted, for matching against a tape."""
        found = self._plain(value, _ANY_SIZE)
        if found is None:
            return self._settled(value)
        return self._clean(value) if found[1] else value

    def _plain(
        self,
        value: Any,
        most: int,
        redacted: bool | str = False,  # noqa: FBT001, FBT002  (hot)
    ) -> tuple[bytes, bool] | None:
        """Return the JSON of a value that JSON holds exactly, and whether the value must be examined: it may hold a
        secret, or its JSON is longer than `most`. None: JSON does not hold the value exactly. `redacted`: the name of
        a member that is not searched.
        """
        core, search, keys = native_core.core, self._search, self._keys
        if type(value) is dict and "command" in value and self._redactor is not None:
            keys = self._redactor.safe_keys.of(value)
        if core is not None and search is not None and not redacted:
            found = core.encode(value, keys.known, THRESHOLD, *search)
            if type(found) is bytes:
                return found, False
            if found is not None:
                encoded, clue = found
                return encoded, is_confirmed(encoded, clue, (), search[1])
        # The core leaves unusual and large values to Python.
        try:
            if is_plain(value, keys):
                encoded = self._json(value)
                if len(encoded) > most:
                    return encoded, True
                searched = encoded
                if redacted and redacted in value and self._suspects is not None:
                    searched = encoded.replace(self._json(value[redacted]), b"", 1)
                return encoded, self._suspects is not None and self._suspects(searched)
        except _UNPLAIN:
            return None
        return None

    def learn_secrets(self, variables: Mapping[str, str]) -> bool:
        """Redact the secrets among these variables from now on, in the caches too. Return whether any were new."""
        if self._redactor is None or not self._redactor.renew(variables):
            return False
        self._suspects = self._redactor.suspicion()
        self._search = self._native_search()
        # Replaced, not cleared: another thread may be about to store data that it encoded before.
        self.names = Names(self._redactor)
        self._prepare_core()
        return True

    def _native_search(self) -> tuple[Any, Any] | None:
        """Return what the native core searches for in data. None: values are encoded in Python."""
        return (None, None) if self._redactor is None else self._redactor.native_search()

    def use(self, encode: jsonbytes.Encode) -> None:
        """Encode JSON with this function from now on, in Python: for comparing the speed of two encoders."""
        self._json, self._is_fastest, self._search, self.native = encode, True, None, None

    def hurry(self) -> None:
        """Switch to the faster JSON encoder that the program has installed, but not loaded.

        Once: a signal handler may record while that import is under way.
        """
        if not self._is_fastest and native_core.core is None:
            self._is_fastest = True
            self._json = jsonbytes.fastest(may_import=True)

    def _clean(self, plain: Any, redacted: bool | str = False) -> Any:  # noqa: FBT001, FBT002  (hot)
        if self._redactor is None:
            return plain
        if not redacted or redacted not in plain:
            return self._redactor.clean(plain)
        # A redacted member is not redacted again: its placeholders and what stands beside them may look like secrets.
        clean = self._redactor.clean({**plain, redacted: None})
        clean[redacted] = plain[redacted]
        return clean

    def _settled(self, value: Any) -> Any:
        frozen = freeze(value)
        if self._redactor is None:
            return frozen
        # A large value is redacted part by part, without encoding it as JSON and checking that first.
        if _is_large(frozen) or self._redactor.suspects(self._json(frozen)):
            return self._redactor.clean(frozen)
        return self._redactor.clean_names(frozen)


def _is_large(frozen: Any) -> bool:
    """Return whether the value holds a text that belongs in a blob. A body of megabytes is not encoded to find out."""
    if type(frozen) is str:
        return len(frozen) > THRESHOLD
    if type(frozen) is dict:
        return any(map(_is_large, frozen.values()))
    return type(frozen) is list and any(map(_is_large, frozen))


def append(segment: OpenSegment, event: NewEvent) -> int:
    """Write one event to the tape and return its seq. OSError: it is not on the tape.

    The only function that writes events: hooks, clock readings, streams, the loop, the proxy, the shims and imported
    sessions all end here. Written as one long function, because every event pays for each call in it.
    """
    native = segment.native
    if native is not None and native_core.core is not None and type(event) is NewEvent:
        # Does the same as the lines below, in one step, and leaves unusual and large data to them.
        seq: int | None = native_core.core.append(
            native,
            event.kind,
            event.data,
            event.at,
            event.parent,
            event.cause,
            event.redacted,
            event.user,
            event.who,
            event.why,
        )
        if seq is not None:
            return seq
    kind = event.kind
    if type(kind) is not str:
        kind = word(kind)
    data = segment.encode_data(kind, event.data, event.user, event.redacted)
    parent, cause, who = event.parent, event.cause, event.who
    if parent is None:
        parent = _enclosing()
        if parent is None:
            parent = segment.root
    names = segment.names
    dated = event if type(event) is DatedEvent else None
    if dated is None:
        lane = f'"thread":{thread_id()},"lane":{names[_current_lane().name]}'
    else:
        lane = f'"lane":{names[dated.lane]}'
    members = (
        f'{segment.ids}{lane},"at":{event.at},"who":{names[segment.who if who is None else word(who)]},'
        f'"parent":{parent if type(parent) is int else names[str(parent)]},'
    )
    if cause is not None:
        members += f'"cause":{cause if _is_seq(cause) else names[word(cause)]},'
    if event.why is not None:
        members += f'"why":{names.encode(word(event.why))},'
    if event.user and kind in KINDS:
        members += '"user":true,'
    if dated is None:
        return segment.writer.append(names[kind], members, data)
    return segment.writer.append(names[kind], members, data, dated.wall, dated.mono)


class Names(dict[str, str]):
    """Short texts that are repeated often (kinds, lanes, agents, references), as redacted JSON."""

    def __init__(self, redactor: Redactor | None) -> None:
        super().__init__()
        self._redactor = redactor

    def __missing__(self, text: str) -> str:
        parent, _, ordinal = text.rpartition("/")
        if parent and ordinal.isdecimal() and self.get(parent) == f'"{parent}"':
            # A child lane. A program may have a lane for each of its tasks, and a number after a harmless name is
            # harmless.
            encoded = f'"{text}"'
        else:
            encoded = self.encode(text)
        if len(text) <= _LONGEST_REMEMBERED:
            if len(self) > _MOST_REMEMBERED:
                self.clear()
            self[text] = encoded
        return encoded

    def encode(self, text: str) -> str:
        clean = text if self._redactor is None else self._redactor.clean_text(text)
        if clean.isascii() and clean.isprintable() and '"' not in clean and "\\" not in clean:
            return f'"{clean}"'
        # Half of a surrogate pair, as in some file names, is not valid JSON for every reader.
        return quote(clean.encode("utf-8", "backslashreplace").decode())


def _is_seq(ref: Any) -> bool:
    return type(ref) is int and 0 <= ref < 2**63


def word(value: Any) -> str:
    """Return a kind or a name as text. Programs pass enums, subclasses of `str`, and other types."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, enum.Enum) and isinstance(value.value, str):
        return value.value
    return safe_str(value)
