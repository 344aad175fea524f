"""Events of one process onto the tape: five questions filled in, values frozen, secrets out.

Fails open: whatever goes wrong here is counted, said once on stderr, and never reaches the host.
Knows redaction, levels and the segment writer; not why an event happened.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from pathlib import Path
from typing import Any, Callable

from playhead import clock, events, jsonbytes, lanes
from playhead.events import Level, Ref
from playhead.reduce import reduce
from playhead.redact import Redactor
from playhead.tape.blobs import THRESHOLD
from playhead.tape.format import FORMAT_VERSION
from playhead.tape.spill import spill
from playhead.tape.writer import SegmentWriter
from playhead.values import AnyKey, freeze, is_plain, safe_str

# How often to ask whether the file still has its name. Two system calls: not for every event.
_CHECK_EVERY = 64
# When a busy recorder may import a faster encoder that the host has installed but not loaded.
_UPGRADE_AFTER = 256


class Quoted(dict[str, str]):
    """Strings that come again and again (kinds, names), spelled as JSON once."""

    def __missing__(self, text: str) -> str:
        if len(self) > 10_000:
            self.clear()
        quoted = self[text] = json.dumps(text)
        return quoted


class Recorder:
    """Writes one process's segment. Threads share it; a forked child gets a segment of its own."""

    def __init__(
        self,
        *,
        run: Path,
        run_id: str,
        who: str,
        level: Level = "full",
        redactor: Redactor | None = None,
        parent: Ref | None = None,
        first_seq: int = 0,
        generation: int = 0,
        may_import: bool = True,
    ) -> None:
        self.run = run
        self.run_id = run_id
        self.level = level
        self.redactor = redactor
        self.generation = generation
        self.lost = 0
        self.events = 0
        self.warned = False
        self._closed = False
        # What others still have to say when the run ends: final snapshots of state stores.
        self.last_words: list[Callable[[], None]] = []
        self._gap: tuple[int, str] | None = None
        self._quoted = Quoted()
        self.who = who
        self._who = self._quoted[who]
        self._parent = parent
        self._safe_keys = AnyKey() if redactor is None else redactor.safe_keys
        self._encode = jsonbytes.fastest(may_import=may_import)
        self._may_import = may_import
        self._first_seq = first_seq
        self._writer: SegmentWriter | None = None
        self._open()
        _live.add(self)

    @property
    def segment(self) -> str:
        return self._writer.name if self._writer else str(clock.pid())

    @property
    def root(self) -> str:
        """The name of the event that everything at the top of this process hangs under."""
        return f"{self.segment}:{self._root}" if isinstance(self._root, int) else self._root

    @property
    def next_seq(self) -> int:
        return self._writer.seq if self._writer else self._first_seq

    @property
    def bytes_written(self) -> int:
        return self._writer.size if self._writer else 0

    @property
    def checksum(self) -> int:
        return self._writer.crc if self._writer else 0

    def add(
        self,
        kind: str,
        data: Any,
        at: str,
        *,
        who: str | None = None,
        why: str | None = None,
        parent: Ref | None = None,
        cause: Ref | None = None,
        user: bool = False,
    ) -> int | None:
        """Put one event on the tape; its seq, or None if it could not be written."""
        try:
            encoded = self._data(kind, data, user)
            # First: a forked child has no segment yet, and the event must carry the child's own names.
            writer = self._writer or self._open()
            if parent is None:
                parent = lanes.enclosing.get()
                if parent is None:
                    parent = self._root
            rest = (
                f'{self._ids}"thread":{clock.thread_id()},"lane":{lanes.current.get().quoted},"at":{at},'
                f'"who":{self._who if who is None else self._quoted[who]},'
                f'"parent":{parent if type(parent) is int else self._quoted[str(parent)]},'
            )
            if cause is not None:
                rest += f'"cause":{cause if type(cause) is int else self._quoted[str(cause)]},'
            if why is not None:
                rest += f'"why":{json.dumps(self._clean(why))},'
            if user and kind in events.KINDS:
                rest += '"user":true,'
            if self._gap is not None:
                self._say_gap()
            seq = writer.append(self._quoted[kind], rest, encoded)
            self.events += 1
            if not self.events % _CHECK_EVERY:
                self._look_after()
        except Exception as error:
            self._lose(error)
            return None
        return seq

    def say_last_words(self) -> None:
        while self.last_words:
            word = self.last_words.pop(0)
            try:
                word()
            except Exception as error:  # the host's own code, at the worst of times
                self._lose(error)

    def close(self, **facts: Any) -> None:
        """Say goodbye on the tape and let go of the file. Idempotent. `facts` are further members of
        the last event: the error that ended the process."""
        if self._writer is None or self._closed:
            return
        self.say_last_words()
        self._look_after()
        # By the writer's count: Ctrl-C may have struck between an event and our counting it.
        data = {"events": self.next_seq - self._first_seq + 1, "lost": self.lost, **facts}
        self.add(events.SEGMENT_END, data, '""', parent=self._root)
        self._closed = True
        if self._writer is not None:
            self._writer.close()
        _live.discard(self)

    def warn(self, message: str) -> None:
        """Once a run, on stderr, one line. Not `warnings`: a host may turn those into errors."""
        if self.warned:
            return
        self.warned = True
        try:
            sys.stderr.write(f"playhead: {message} The program goes on unharmed.\n")
        except Exception:
            self.lost += 0  # stderr is closed or broken: there is nobody left to tell

    def _data(self, kind: str, data: Any, user: bool) -> bytes:
        if self.level != "full":
            data = reduce(self.level, kind, data, ours=kind in events.KINDS and not user)
        encoded = b""
        if is_plain(data, self._safe_keys):
            try:
                encoded = self._encode(data)
            except (ValueError, TypeError, RecursionError):
                encoded = b""  # lone surrogates, a dict changed by another thread: the slow way
            if encoded and len(encoded) <= THRESHOLD:
                if self.redactor is None or not self.redactor.suspects(encoded):
                    return encoded
        # What JSON holds as it stands needs no freezing, only a closer look.
        frozen = data if encoded else freeze(data)
        if self.redactor is not None:
            frozen = self.redactor.clean(frozen)
        encoded = self._encode(frozen)
        if len(encoded) > THRESHOLD:
            return spill(self.run, frozen, self._encode)
        return encoded

    def frozen(self, value: Any) -> Any:
        """`value` as it would stand on the tape: frozen, secrets out. For matching against one."""
        if is_plain(value, self._safe_keys):
            if self.redactor is None:
                return value
            try:
                if not self.redactor.suspects(self._encode(value)):
                    return value
            except (ValueError, TypeError, RecursionError):
                return self.redactor.clean(freeze(value))
        frozen = freeze(value)
        return frozen if self.redactor is None else self.redactor.clean(frozen)

    def _clean(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.clean_text(text)

    def _open(self) -> SegmentWriter:
        """Start this process's segment with the event that says which process it is."""
        writer = self._writer = SegmentWriter(self.run, first_seq=self._first_seq)
        self._root: Ref = self._parent if self._parent is not None else self._first_seq
        self._ids = f'"pid":{clock.pid()},'
        if writer.name != str(clock.pid()):
            self._ids += f'"seg":{json.dumps(writer.name)},'
        self.add(events.SEGMENT_START, self._process(), '""', parent=self._root)
        return writer

    def _process(self) -> dict[str, Any]:
        return {
            "format": FORMAT_VERSION,
            "run": self.run_id,
            "generation": self.generation,
            "level": self.level,
            "redacted": self.redactor is not None,
            "pid": clock.pid(),
            "ppid": os.getppid(),
            "birth": clock.process_birth(clock.pid()) or "",
            "host": clock.host(),
            "python": sys.version.split()[0],
            "argv": [str(word) for word in getattr(sys, "argv", [])][:64],
        }

    def _look_after(self) -> None:
        writer = self._writer
        if writer is None:
            return
        if not writer.is_on_disk():
            with writer.lock:
                writer.reopen()
            self._gap = (0, "the tape's folder was deleted or closed during the run; written again")
            self.warn(f"the tape in {self.run} was deleted or closed during the run; it was written again.")
        if self.events >= _UPGRADE_AFTER and self._encode is jsonbytes.encode_std:
            self._encode = jsonbytes.fastest(may_import=True)

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        if self._closed:
            return  # a thread or a __del__ that outlives the recording: nobody is to be told
        lost, _ = self._gap or (0, "")
        self._gap = (lost + 1, f"{type(error).__name__}: {safe_str(error)}")
        self.warn(f"an event could not be recorded in {self.run} ({safe_str(error)}); what is lost is counted.")
        if isinstance(error, OSError):
            try:
                self._come_back()
            except Exception as again:  # still no: the next event tries once more
                self._gap = (lost + 1, f"{type(error).__name__}: {safe_str(again)}")

    def _come_back(self) -> None:
        writer = self._writer
        if writer is not None and not writer.is_on_disk():
            with writer.lock:
                writer.reopen()

    def _say_gap(self) -> None:
        """First thing after a loss: how much is missing here, and why."""
        gap, self._gap = self._gap, None
        if gap is not None:
            self.add(events.GAP, {"lost": gap[0], "why": gap[1]}, '""')

    def before_fork(self) -> None:
        if self._writer is not None:
            self._writer.lock.acquire()

    def after_fork_in_parent(self) -> None:
        if self._writer is not None:
            self._writer.lock.release()

    def after_fork_in_child(self) -> None:
        """The child's events go to its own segment, opened with its first event: a child that only
        execs leaves none. Its place in the story is the event that enclosed the fork."""
        writer, self._writer = self._writer, None
        self.last_words.clear()  # of the parent's stores: the parent says them
        if writer is None:
            return
        here = lanes.enclosing.get()
        place = here if here is not None else self._first_seq
        self._parent = f"{writer.name}:{place}" if isinstance(place, int) else place
        lanes.enclosing.set(self._parent)
        writer.close()
        self.events = self.lost = self._first_seq = 0


_live: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _for_all(method: str) -> None:
    for recorder in list(_live):
        getattr(recorder, method)()


os.register_at_fork(
    before=lambda: _for_all("before_fork"),
    after_in_parent=lambda: _for_all("after_fork_in_parent"),
    after_in_child=lambda: _for_all("after_fork_in_child"),
)
