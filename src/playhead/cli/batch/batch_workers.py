"""Run the jobs of a batch in parallel. Knows fork, pipes and time limits; not what a job does.

A child is a fork of this process, which has imported everything: a replay starts at once and shares
memory until it writes to it.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from playhead import clock
from playhead.cli.batch.batch_job import Job, replay_one, tail_of
from playhead.story.verdicts import Verdict, verdict_from

_ENDING = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class _Child:
    job: Job
    pid: int
    source: int
    scratch: Path
    began: int
    received: bytearray = field(default_factory=bytearray)
    late: bool = False


class WorkerPool:
    """At most `size` children at a time, each with `limit_s` seconds."""

    def __init__(self, size: int, limit_s: float) -> None:
        self._size = size
        self._limit_ns = int(limit_s * 1e9)
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()

    def verdicts(self, jobs: Iterator[Job | None]) -> Generator[Verdict, None, None]:
        """Yield verdicts as they arrive. Closing the generator ends the children.

        None among the jobs: the next one must wait for a verdict. With no child left, the batch ends there.
        """
        gc.collect()
        gc.freeze()  # a collection in a child would touch, and so copy, every page it shares
        before = signal.signal(signal.SIGTERM, _stop)
        try:
            with tempfile.TemporaryDirectory(prefix="playhead-batch-") as folder:
                try:
                    yield from self._run(jobs, Path(folder))
                finally:
                    # Before the folder is deleted: a child without it would print a traceback.
                    self._end_all()
        finally:
            self._selector.close()
            signal.signal(signal.SIGTERM, before)
            gc.unfreeze()

    def _run(self, jobs: Iterator[Job | None], folder: Path) -> Iterator[Verdict]:
        number = 0
        while True:
            while len(self._children) < self._size and (job := next(jobs, None)) is not None:
                number += 1
                self._start(job, folder / str(number))
            if not self._children:
                return
            for key, _ in self._selector.select(self._time_left()):
                child = self._children[key.fd]
                piece = os.read(child.source, 65536)
                child.received += piece
                if not piece:
                    yield self._finish(child)
            self._end_late()

    def _start(self, job: Job, scratch: Path) -> None:
        scratch.mkdir()
        source, sink = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        # Block signals: CPython drops an exception that a handler raises inside fork's hooks, and a
        # child that is not in the table yet would not be killed.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        pid = os.fork()
        if pid == 0:
            for other in (source, *self._children):
                os.close(other)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _be_child(job, scratch, sink)
        os.close(sink)
        child = _Child(job=job, pid=pid, source=source, scratch=scratch, began=clock.mono_ns())
        self._children[source] = child
        self._selector.register(source, selectors.EVENT_READ)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _finish(self, child: _Child) -> Verdict:
        _, status = os.waitpid(child.pid, 0)
        took_s = (clock.mono_ns() - child.began) / 1e9
        verdict = _received_verdict(child) or _died(child, status, took_s, self._limit_ns / 1e9)
        self._forget(child)
        return verdict

    def _forget(self, child: _Child) -> None:
        self._selector.unregister(child.source)
        os.close(child.source)
        del self._children[child.source]
        shutil.rmtree(child.scratch, ignore_errors=True)

    def _time_left(self) -> float:
        """Seconds until the first child exceeds its time limit."""
        first = min(child.began for child in self._children.values())
        return max(0.0, (first + self._limit_ns - clock.mono_ns()) / 1e9)

    def _end_late(self) -> None:
        now = clock.mono_ns()
        for child in self._children.values():
            if not child.late and now - child.began > self._limit_ns:
                child.late = True
                _kill(child.pid)

    def _end_all(self) -> None:
        for child in list(self._children.values()):
            _kill(child.pid)
            os.waitpid(child.pid, 0)
            self._forget(child)


def _stop(_number: int, _frame: object) -> NoReturn:
    """CI cancels a job with SIGTERM: end the children and keep the journal for --resume."""
    raise KeyboardInterrupt


def _kill(pid: int) -> None:
    """Kill the child's process group, which includes the agent."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _be_child(job: Job, scratch: Path, sink: int) -> NoReturn:
    """Run the job and exit: it never returns, so that the parent's code does not run a second time in the child."""
    code = 1
    try:
        os.setsid()
        verdict = replay_one(job, scratch)
        with os.fdopen(sink, "wb") as pipe:
            pipe.write(json.dumps(verdict.as_json()).encode())
        code = 0
    except BaseException:  # noqa: BLE001  goes to the log, which the parent reads
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _received_verdict(child: _Child) -> Verdict | None:
    try:
        return verdict_from(json.loads(bytes(child.received)))
    except (KeyError, TypeError, ValueError):
        return None


def _died(child: _Child, status: int, took_s: float, limit_s: float) -> Verdict:
    code = os.waitstatus_to_exitcode(status)
    said = tail_of(child.scratch)
    last = said.strip().rpartition("\n")[2]
    ended = f"ended by signal {-code}" if code < 0 else f"no verdict: {last}"
    why = f"timed out after {limit_s:g} s (--timeout)" if child.late else ended
    return Verdict(
        tape=child.job.target.key,
        name=child.job.target.name,
        outcome="error",
        round=child.job.round,
        why=(why,),
        took_s=took_s,
        said=said,
    )
