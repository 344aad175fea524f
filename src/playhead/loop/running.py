"""Run the command of a loop, iteration by iteration. Knows processes, their output and interruption.

Ctrl-C and SIGTERM do not cut an iteration off: the command ends in its own way after the terminal's Ctrl-C, its
output is read to the end, and then the loop stops. So the tape holds exactly what the loop has seen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import IO, Any

from playhead.loop.beginning import is_replaying, open_session
from playhead.loop.iteration import Iteration, as_call
from playhead.loop.plan import (
    Plan,
    argv_of,
    check_plan,
    command_name,
    prompt_path,
    read_prompt,
    takes_prompt,
)
from playhead.loop.progress import Progress
from playhead.loop.resumed_parts import taped_parts
from playhead.loop.session import Session

# The exit codes that shells use.
INTERRUPTED, TERMINATED = 130, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
# How long a command may take to end after it was asked to.
PATIENCE_S = 10.0


class Terminated(BaseException):
    """Raised for SIGTERM, as KeyboardInterrupt is for SIGINT."""


class Stops:
    """Replaces the handlers of both signals while it is entered; only in the main thread."""

    def __init__(self) -> None:
        # The exit code of the loop after a signal; 0: no signal has arrived.
        self.code = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}
        self._asked = 0

    def __enter__(self) -> Stops:  # noqa: PYI034  (typing.Self came with 3.11)
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._hear) for one in _CODES}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Stop here if a signal has arrived."""
        if self.code:
            stop_with(self.code)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.code = _CODES[signal.Signals(number)]
        self._asked += 1
        process = self.process
        if process is None:
            return
        # Ctrl-C reaches the command as well, while SIGTERM was sent only to us. A second signal always ends the
        # command.
        if number == signal.SIGTERM or self._asked > 1:
            with suppress(OSError):
                process.terminate()
        if self._asked == 1:
            threading.Thread(target=_see_to_it, args=(process,), daemon=True).start()


def stop_with(code: int) -> None:
    """Raise the exception that makes the program exit with that code."""
    raise KeyboardInterrupt if code == INTERRUPTED else Terminated


def code_of(stopped: BaseException) -> int:
    return INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else TERMINATED


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process: wait for it, then terminate it, then kill it."""
    for last_word in (None, process.terminate, process.kill):
        if last_word is not None:
            last_word()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _see_to_it(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        end(process)


# The capacity of a pipe that we rely on. Longer input is written in a thread while output is read, not before.
_PIPE = 32 * 1024
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a loop: `done`, `error` or `interrupted`; and the number of complete iterations, including
    earlier ones.
    """

    session: str
    status: str
    iterations: int
    run: str | None
    reason: str | None
    exit_code: int


def run(plan: Plan, progress: Progress | None = None) -> Result:
    """Make all remaining iterations. UsageError: nothing was run."""
    check_plan(plan, replaying=is_replaying())
    shown = progress or Progress(quiet=True)
    session = open_session(
        plan.session, plan.stages, context=plan.context, record=plan.record, level=plan.level,
        store=plan.store, resume=plan.resume, force=plan.force, command=plan.command,
    )  # fmt: skip
    parts = taped_parts()
    if parts and parts[0].facts is not None:
        session.state = parts[0].state(
            session.state
        )  # the recording may have started in the middle
    result = _through(plan, session, shown)
    for part in parts[1:]:
        if part.facts is None and session.status == "done":
            break
        session.state = part.state(session.state)
        result = _through(part.plan(plan), session, shown)
    return result


def _through(plan: Plan, session: Session, shown: Progress) -> Result:
    """Run until the session is done, an iteration fails, or a signal arrives."""
    left_by = 0
    try:
        with session, Stops() as stops:
            for iteration in session.iterations():
                _make(plan, iteration, shown, stops)
    except (KeyboardInterrupt, Terminated) as stopped:
        left_by = code_of(stopped)
    shown.finish(session)
    state = session.state
    return Result(
        session=session.name,
        status=session.status,
        iterations=state.total,
        run=state.run,
        reason=state.reason,
        exit_code=left_by or {"done": 0}.get(session.status, 1),
    )


def _make(plan: Plan, iteration: Iteration, shown: Progress, stops: Stops) -> None:
    shown.begin(iteration)
    prompt = _prompt_of(plan, iteration)
    iteration.prompt(prompt or "", command=command_name(plan.command))
    variables = iteration.environment()
    argv = argv_of(plan.command, prompt, variables)
    if (path := prompt_path(plan, iteration.stage, iteration.number)) is not None:
        variables["PLAYHEAD_PROMPT"] = str(path.absolute())
    sent = None if prompt is None or takes_prompt(plan.command) else prompt.encode()

    def hear(raw: bytes) -> None:
        glances = iteration.piece(raw)
        shown.heard(raw, glances, is_agent=iteration.is_agent)

    def left_behind() -> dict[str, Any]:
        return {"interrupted": stops.code} if stops.code else iteration.left()

    try:
        stops.check()
        code = _run(argv, variables, sent, hear, shown=shown, stops=stops)
        left = _crossed(iteration, left_behind)
        if "interrupted" in left:
            stop_with(left["interrupted"])
        iteration.end(exit_code=code, left=left, complaint=shown.complaint)
    finally:
        shown.end(iteration)


def _run(
    argv: list[str], variables: Mapping[str, str], sent: bytes | None, hear: Callable[[bytes], None],
    *, shown: Progress, stops: Stops,
) -> int:  # fmt: skip
    """Run the command from its start to its end; its output goes to `hear` as it arrives."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if sent is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Through us, so that a replay prints it again; but a terminal is left to the command.
            stderr=None if shown.on_terminal else subprocess.PIPE,
            env={**os.environ, **variables},
        )
    except OSError as error:
        hear(f"cannot run {argv[0]}: {error.strerror}\n".encode())
        return 127 if isinstance(error, FileNotFoundError) else 126
    stops.process = process
    output: Any = process.stdout
    beside = [] if process.stderr is None else [_beside(_passing_on(process.stderr, shown))]
    try:
        if process.stdin is not None:
            beside += _feed(process.stdin, sent or b"")
        while piece := output.read1(_PIECE):
            hear(piece)
        code = process.wait()
        for one in beside:
            # With a limit, because a process that the command left running may hold its stderr.
            one.join(PATIENCE_S)
    except BaseException:
        end(process)
        raise
    finally:
        stops.process = None
        output.close()
    return code


def _passing_on(stderr: Any, shown: Progress) -> Callable[[], None]:
    def pass_on() -> None:
        while piece := stderr.read1(_PIECE):
            shown.complained(piece)
        stderr.close()

    return pass_on


def _beside(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _feed(stdin: IO[bytes], sent: bytes) -> list[threading.Thread]:
    """Write the prompt. A prompt longer than a pipe must be written in a thread: the command may wait until we
    read its output.
    """

    def write() -> None:
        with suppress(BrokenPipeError):  # the command does not read its stdin
            stdin.write(sent)
        _close(stdin)

    if len(sent) > _PIPE:
        return [_beside(write)]
    write()
    return []


def _close(stdin: IO[bytes]) -> None:
    with suppress(BrokenPipeError):
        stdin.close()


def _crossed(iteration: Iteration, live: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Record the result of an iteration's command as one call. In a replay no command runs that could write a status
    file, and no Ctrl-C arrives, so both come from the tape.
    """
    found = as_call("loop.status", iteration, live)
    return found if isinstance(found, dict) else {}  # a tape may contain any value


def _prompt_of(plan: Plan, iteration: Iteration) -> str | None:
    """Return the prompt of an iteration. In a resumed part it is a call: people edit prompts before they resume, and
    a replay restores only the files of the first part.
    """

    def read() -> str | None:
        return read_prompt(plan, iteration.stage, iteration.number)

    found = as_call("loop.prompt", iteration, read) if plan.resume and plan.prompt else read()
    return found if isinstance(found, str) else None


__all__ = ["Result", "Session", "run"]
