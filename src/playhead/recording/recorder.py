"""Records the events of one process. Fails open: an event that cannot be written is counted, reported once
on stderr and on the tape, and the program never notices.

Knows the life of a segment (opening, losses, recovery, forks, closing); does not know how an event is
encoded (`encoder`), nor why it happened.
"""

from __future__ import annotations

import os
import sys
from _weakrefset import WeakSet

from playhead import clock, events
from playhead.encoding import jsonbytes
from playhead.encoding.values import safe_str
from playhead.host import env_changes
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later
from playhead.host.lean import RLock
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent, OpenSegment, append
from playhead.recording.losses import Losses, reason
from playhead.redact import Redactor
from playhead.redact.late_secrets import LateSecrets
from playhead.redact.names import is_secret_variable
from playhead.tape.layout import FORMAT_VERSION
from playhead.tape.writer import SegmentWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from playhead.events import Level, Ref
else:
    pathlib = Later("pathlib")


# After this many events (plus one) the recorder checks whether the file still has its name: two system calls,
# too many for every event.
_CHECK_EVERY = 63
# When a busy recorder may import a faster encoder that the host has installed but not loaded.
_UPGRADE_AFTER = 256


class Recorder:
    """Writes one process's segment. Threads share it; a forked child gets a segment of its own."""

    def __init__(
        self,
        *,
        run: Path | str,
        run_id: str,
        who: str,
        level: Level = "full",
        redactor: Redactor | None = None,
        parent: Ref | None = None,
        first_seq: int = 0,
        generation: int = 0,
        may_import: bool = False,
    ) -> None:
        # As text: `pathlib` is not loaded before `run` is used.
        self.folder = os.fspath(run)
        self.run_id = run_id
        self.level = level
        self.redactor = redactor
        self.generation = generation
        # Called when the run ends, to write final events: snapshots of state stores.
        self.last_words: list[Callable[[], None]] = []
        # Called when the folder of the run had to be created again: its other contents are lost.
        self.made_anew: Callable[[], None] | None = None
        self.who = who
        # The name of this process's segment. An attribute: every piece of a stream compares it.
        self.segment = str(clock.pid())
        self._losses = Losses()
        self._closed = False
        self._parent = parent
        self._tape = OpenSegment(
            self.folder, who=who, level=level, redactor=redactor, may_import=may_import
        )
        # Returns a value in its form on the tape, for matching against one.
        self.frozen = self._tape.frozen
        self._variables = {} if redactor is None else env_changes.snapshot()
        self._late = None if redactor is None else LateSecrets(self.folder, redactor.key)
        self._first_seq = first_seq
        self._writer: SegmentWriter | None = None
        self._opening = RLock()
        _live.add(self)
        if redactor is not None:
            env_changes.install(_variable_set)
        self._open()

    @property
    def run(self) -> Path:
        return pathlib.Path(self.folder)

    @property
    def root(self) -> str:
        """Return the name of the event that is the parent of all top-level events of this process."""
        return f"{self.segment}:{self._root}" if isinstance(self._root, int) else self._root

    @property
    def next_seq(self) -> int:
        return self._writer.seq if self._writer else self._first_seq

    @property
    def events(self) -> int:
        """Return the number of events in this process's segment so far."""
        return self._writer.seq - self._writer.first_seq if self._writer else 0

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def lost(self) -> int:
        return self._losses.total

    @property
    def warned(self) -> bool:
        """Return whether the user has been warned that something is missing."""
        return self._losses.warned

    @property
    def bytes_written(self) -> int:
        return self._writer.size if self._writer else 0

    @property
    def checksum(self) -> int:
        return self._writer.crc if self._writer else 0

    def append(self, event: NewEvent) -> int | None:
        """Write one event to the tape. Return its seq, or None if it could not be written."""
        try:
            # First: a forked child has no segment yet, and the event must carry the child's names.
            writer = self._writer or self._open()
            segment = self._tape
            if self._losses.untold is not None:
                self._tell_losses()
            opened = writer.opened
            try:
                seq = append(segment, event)
            except OSError:
                if not self._recover(writer, opened):
                    raise
                self._tell_losses()
                seq = append(segment, event)
            if not seq & _CHECK_EVERY or writer.unwritten:
                self._look_after(writer)
        except Exception as error:
            if is_interrupt(error):
                raise
            self._lose(error)
            return None
        return seq

    def say_last_words(self) -> None:
        while self.last_words:
            say = self.last_words.pop(0)
            try:
                say()
            except Exception as error:  # code of the host, which may fail in any way
                if is_interrupt(error):
                    raise
                self._lose(error)

    def close(self, **facts: Any) -> None:
        """Write the last event and close the file. Idempotent. `facts` are further members of the last event:
        the error that ended the process.
        """
        if self._closed:
            return
        self.say_last_words()  # first: a forked child may have recorded nothing else
        writer = self._writer
        if writer is None:
            return
        self._recover(writer, writer.opened)
        # Written together, or an event of another thread between the two would not be counted.
        with writer.lock:
            self._tell_losses_if_possible()
            data = {"events": self.events + 1, "lost": self.lost, **facts}
            self.append(NewEvent(events.SEGMENT_END, data, parent=self._root))
            self._closed = True
            writer.close()
        _live.discard(self)
        if not _live:
            env_changes.uninstall()

    def encode_with(self, encode: jsonbytes.Encode) -> None:
        """Use this encoder from now on: for comparing the speed of two encoders."""
        self._tape.use(encode)

    def warn(self, message: str) -> None:
        """Print one line on stderr, once per run."""
        self._losses.warn(message)

    def learn_secrets(self, variables: Mapping[str, str]) -> None:
        """Redact the secrets among these variables from now on."""
        with _learning:
            is_new = self._tape.learn_secrets(variables)
        if is_new and self._late is not None:
            self._late.share(variables)

    def forget_shared_secrets(self) -> None:
        """Forget the shared secrets at the end of the run: no other process needs them any more."""
        if self._late is not None:
            self._late.forget()

    def hear_secrets(self) -> None:
        """Redact from now on the secrets that other processes of the run have learnt."""
        values = [] if self._late is None else self._late.hear()
        if values:
            with _learning:
                self._tape.learn_secrets(
                    {f"LATE_{at}_SECRET": one for at, one in enumerate(values)}
                )

    def _compare_variables(self) -> None:
        """Find secrets that were set without `os.putenv` (see `host.env_changes`)."""
        if self.redactor is None:
            return
        now = env_changes.snapshot()
        if now != self._variables:
            self._variables = now
            self.learn_secrets(os.environ)

    def _open(self) -> SegmentWriter:
        """Start this process's segment with the event that says which process it is."""
        with self._opening:
            if self._writer is not None:  # another thread was first
                return self._writer
            writer = SegmentWriter(self.folder, first_seq=self._first_seq)
            self._root: Ref = self._parent if self._parent is not None else self._first_seq
            self._tape.root = self._root
            self._name_segment(writer)
            with writer.lock:  # so that no other thread's event comes before it
                self._writer = writer
                self.append(NewEvent(events.SEGMENT_START, self._process(), parent=self._root))
            return writer

    def _name_segment(self, writer: SegmentWriter) -> None:
        self.segment = writer.name
        self._tape.write_to(writer)

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

    def _look_after(self, writer: SegmentWriter) -> None:
        """Do periodic work: check the file, the secrets and the encoder, and count events that a signal handler could
        not write.

        The event that triggered it is on the tape already, whatever happens here.
        """
        try:
            while writer.unwritten:
                self._lose(writer.unwritten.pop())
            self._recover(writer, writer.opened)
            self._compare_variables()
            if self.events >= _UPGRADE_AFTER:
                self._tape.hurry()
        except Exception as error:
            if is_interrupt(error):
                raise
            self._losses.count(0, reason(error))

    def _recover(self, writer: SegmentWriter, opened: int) -> bool:
        """Find or create the file again if it was deleted, or its descriptor closed. Return whether the caller should
        try once more. `opened` is `writer.opened` from before the caller's attempt.
        """
        try:
            # The check and the reopening happen under one lock: several threads fail at the same closed descriptor, the
            # first of them reopens it, and the others find a healthy file. Without the count they would take their
            # failure for a full disk and drop their event.
            with writer.lock:
                if writer.opened != opened:
                    return True
                if self._closed or writer.is_on_disk():
                    return False
                gone = writer.reopen()
                self._name_segment(writer)
                if not writer.size:
                    self.append(NewEvent(events.SEGMENT_START, self._process(), parent=self._root))
            if self.made_anew is not None:
                self.made_anew()
        except OSError as error:
            self._warn_of(error)
            return False
        happened = "was deleted or closed during the run; recording continues"
        self._losses.count(gone, f"the tape {happened}")
        self.warn(f"the tape in {self.folder} {happened}.")
        return True

    def _lose(self, error: Exception) -> None:
        self._losses.count(1, reason(error))
        # after that, a thread or a __del__ has outlived the recorder, and there is nothing to report
        if not self._closed:
            self._warn_of(error)

    def _warn_of(self, error: Exception) -> None:
        self.warn(
            f"an event could not be recorded in {self.folder} ({safe_str(error)}); "
            "the tape counts lost events."
        )

    def _tell_losses(self) -> None:
        """Write a gap as the first event after a loss: how many events are missing here, and why."""
        untold = self._losses.take()
        if untold is None:
            return
        lost, why = untold
        try:
            gap = NewEvent(events.GAP, {"lost": lost, "why": why}, '""', self._root)
            append(self._tape, gap)
        except OSError:
            self._losses.give_back(lost, why)
            raise

    def _tell_losses_if_possible(self) -> None:
        try:
            self._tell_losses()
        except OSError as error:
            self._warn_of(error)  # it failed again; the manifest will say how much is missing

    def before_fork(self) -> None:
        self._opening.acquire()
        if self._writer is not None:
            self._writer.lock.acquire()

    def after_fork_in_parent(self) -> None:
        if self._writer is not None:
            self._writer.lock.release()
        self._opening.release()

    def after_fork_in_child(self) -> None:
        """Give the child its own segment, opened with its first event: a child that only execs has none. Its parent in
        the story is the event that enclosed the fork.
        """
        writer, self._writer = self._writer, None
        self.segment = str(clock.pid())
        # The parent writes its last words and losses. Its locks may be held by threads that do not exist in the child.
        self.last_words = []
        self._losses = Losses(warned=self._losses.warned)
        self._opening = RLock()
        if writer is None:
            return
        here = lanes.enclosing.get()
        place = here if here is not None else self._first_seq
        self._parent = f"{writer.name}:{place}" if isinstance(place, int) else place
        lanes.enclosing.set(self._parent)
        writer.close()
        self._first_seq = 0


_live: WeakSet[Recorder] = WeakSet()
# Held while secrets are learnt: two threads that set variables at once must not undo each other's work.
# Re-entrant: a signal handler may set a variable too. No other lock is taken inside.
_learning = RLock()


def _variable_set(name: str, value: str) -> None:
    """Learn the secret in an environment variable that the program has set."""
    if is_secret_variable(name):
        for recorder in list(_live):
            recorder.learn_secrets({name: value})


def _renew_lock() -> None:
    """Renew the lock in a forked child: a thread that does not exist there may have held it."""
    global _learning  # noqa: PLW0603  one a process
    _learning = RLock()


def _for_all(method: str) -> None:
    for recorder in list(_live):
        getattr(recorder, method)()


os.register_at_fork(
    before=lambda: _for_all("before_fork"),
    after_in_parent=lambda: _for_all("after_fork_in_parent"),
    after_in_child=lambda: _for_all("after_fork_in_child"),
)
os.register_at_fork(after_in_child=_renew_lock)
