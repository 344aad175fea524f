"""A session: iterations one after the other, in stages. Knows its progress and stores it on disk; does not know
what an iteration does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from playhead import clock
from playhead.host.stderr import say
from playhead.loop import state as states
from playhead.loop.iteration import Iteration, RecordedLoop
from playhead.loop.state import Open, State, let_go, status_file


class Session:
    """A session, made by `playhead.loop.open_session`. Problems with recording never raise."""

    def __init__(
        self,
        folder: Path,
        state: State,
        *,
        recorded: RecordedLoop | None,
        context: Path | None = None,
        keeps_state: bool = True,
        on_close: Callable[[Session], None] | None = None,
        held: int | None = None,
    ) -> None:
        self.folder = folder
        self.state = state
        self.recorded = recorded
        self.context = context
        # False in a replay: the state on disk belongs to another run.
        self.keeps_state = keeps_state
        self._on_close = on_close
        # The lock of this session, while this process has it.
        self._held = held
        self._warned = False
        self.current: Iteration | None = None
        # The exception that ended the block of the session.
        self.error: Exception | None = None

    @property
    def name(self) -> str:
        return self.state.session

    @property
    def status(self) -> str:
        """`running`, `done`, `error` or `interrupted`."""
        return self.state.status

    @property
    def status_file(self) -> Path:
        return status_file(self.folder)

    def iterations(self) -> Iterator[Iteration]:
        """Yield the remaining iterations. An iteration ends when the next one is requested."""
        while not self.state.over and self.state.status == "running":
            iteration = self.begin()
            yield iteration
            if iteration.is_open:
                iteration.end()

    def begin(self) -> Iteration:
        """Begin the next iteration: its folder, its empty status file, its first event."""
        now = clock.wall_ns()
        number = self.state.done + 1
        opened = Open(stage=self.state.stage, number=number, wall_ns=now)
        self.current = Iteration(self, opened)
        self.current.make()
        return self.current

    def close(self, error: BaseException | None = None) -> None:
        """Close the session for now: an unfinished iteration counts as interrupted, and is made again."""
        if self.current is not None and self.current.is_open:
            self.current.interrupt(error)
        if self.state.status == "running":
            self.save(states.interrupted(self.state))
        self.error = error if isinstance(error, Exception) else None
        if self.keeps_state:
            let_go(self.folder, self._held)
            self._held = None
        if self._on_close is not None:
            done, self._on_close = self._on_close, None
            done(self)

    def __enter__(self) -> Session:  # noqa: PYI034  (typing.Self came with 3.11)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(error)

    def save(self, state: State) -> None:
        self.state = state
        if self.keeps_state:
            try:
                states.write_state(self.folder, state)
            except OSError as error:
                self.complain(error)

    def complain(self, error: OSError) -> None:
        """Report a disk error once per session; the work continues without the missing files."""
        if not self._warned:
            self._warned = True
            where = f" ({error.filename})" if error.filename else ""
            say(
                f"session {self.name} cannot be written: {error.strerror or error}{where}. "
                "It continues without these files."
            )


def taken_up(session: Session, opened: Open) -> Iteration:
    """Continue an iteration that another process has begun."""
    session.current = Iteration(session, opened)
    return session.current
