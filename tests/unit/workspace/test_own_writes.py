"""Changes by the program's own code are told from changes by calls, whatever the threads do in between.

The test is the program: it announces a file as the hooks do, and runs its system calls at the worst moments.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.unit.workspace.conftest import Session

from playhead.workspace.history import FileHistory
from playhead.workspace.watch import call_marks
from playhead.workspace.watch.call_marks import CallMarks


def _calls_of(history: FileHistory, path: bytes) -> list[tuple[str, ...]]:
    """For each change of a file the calls that it belongs to; none: the program's own code."""
    return [one.calls for one in history.effects if any(each.path == path for each in one.changes)]


def _in_thread(session: Session, kind: str, call: str) -> None:
    """Mark a call of another thread."""
    mark = session.marks.start if kind == "start" else session.marks.end
    thread = threading.Thread(target=mark, args=(call,))
    thread.start()
    thread.join()


def test_a_file_announced_before_a_call_and_written_during_it_is_the_programs(
    session: Session,
) -> None:
    file = session.folder / "own.txt"
    session.marks.note_own(str(file))
    _in_thread(session, "start", "1:1")
    file.write_text("own")
    _in_thread(session, "end", "1:1")
    assert _calls_of(session.stop(), b"own.txt") == [()]


def test_calls_that_end_between_the_announcement_and_the_opening_do_not_take_the_file(
    session: Session,
) -> None:
    file = session.folder / "own.txt"
    for call in ("1:1", "1:2", "1:3"):
        _in_thread(session, "start", call)
    session.marks.note_own(str(file))
    for call in ("1:1", "1:2"):
        _in_thread(session, "end", call)
    file.write_text("own")
    _in_thread(session, "end", "1:3")
    assert _calls_of(session.stop(), b"own.txt") == [()]


def test_a_file_that_is_open_at_the_start_of_a_call_and_closed_before_its_end_is_the_programs(
    session: Session,
) -> None:
    file = session.folder / "own.txt"
    session.marks.note_own(str(file))
    with file.open("w") as opened:
        session.marks.start("1:1")
        opened.write("own")
    session.marks.end("1:1")
    assert _calls_of(session.stop(), b"own.txt") == [(), ()]


def test_two_threads_that_append_to_one_log_both_count_as_the_program(session: Session) -> None:
    log = session.folder / "log.txt"
    _in_thread(session, "start", "1:1")
    session.marks.note_own(str(log))
    session.marks.note_own(str(log))  # the second thread, which is not there yet
    log.write_text("first\n")
    _in_thread(session, "end", "1:1")
    _in_thread(session, "start", "1:2")
    with log.open("a") as file:
        file.write("second\n")
    _in_thread(session, "end", "1:2")
    assert _calls_of(session.stop(), b"log.txt") == [(), ()]


def test_a_file_that_the_program_failed_to_open_is_the_calls_that_writes_it(
    session: Session,
) -> None:
    session.marks.note_own(str(session.folder / "out" / "made.txt"))
    assert not (session.folder / "out").exists()
    call = session.call("mkdir out; echo made > out/made.txt")
    assert _calls_of(session.stop(), b"out/made.txt") == [(call,)]


def test_a_file_that_the_program_has_written_before_is_the_calls_that_changes_it(
    session: Session,
) -> None:
    file = session.folder / "both.txt"
    session.marks.note_own(str(file))
    file.write_text("own\n")
    call = session.call("echo call >> both.txt")
    assert _calls_of(session.stop(), b"both.txt") == [(), (call,)]


def test_a_log_stays_the_programs_when_a_call_has_closed_it(session: Session) -> None:
    log = session.folder / "log.txt"
    session.marks.note_own(str(log))
    with log.open("a", buffering=1) as file:
        file.write("own\n")
        call = session.call("echo call >> log.txt")
        _in_thread(session, "start", "1:2")
        file.write("own\n")
        _in_thread(session, "end", "1:2")
    history = session.stop()
    assert _calls_of(history, b"log.txt") == [(), (call,), ()]


def test_files_in_a_folder_that_the_program_moves_during_a_call_are_the_programs(
    session: Session,
) -> None:
    _in_thread(session, "start", "1:1")
    for name in ("src", "moved"):
        session.marks.note_own(str(session.folder / name), call_marks.OWN_MOVE)
    os.rename(session.folder / "src", session.folder / "moved")
    _in_thread(session, "end", "1:1")
    history = session.stop()
    assert _calls_of(history, b"src/m1.py") == [()]
    assert _calls_of(history, b"moved/m1.py") == [()]


class _SilentSocket:
    """A socket on which no answer comes; waiting takes no time in this test, only on its clock."""

    AF_UNIX = SOCK_DGRAM = 0
    now_ns = 0

    def __init__(self, limits: list[float]) -> None:
        self.limits = limits

    def socket(self, *_: object) -> _SilentSocket:
        return self

    __enter__ = socket

    def __exit__(self, *_: object) -> None: ...

    def bind(self, _: object) -> None: ...

    def getsockname(self) -> bytes:
        return b"\0none"

    def settimeout(self, limit: float) -> None:
        self.limits.append(limit)

    def recvmsg(self, *_: object) -> bytes:
        type(self).now_ns += int(self.limits[-1] * 1e9)
        raise TimeoutError


def test_a_late_answer_is_waited_for_and_a_missing_one_costs_little_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    monkeypatch.setattr(call_marks, "socket", _SilentSocket(limits))
    monkeypatch.setattr(call_marks, "mono_ns", lambda: _SilentSocket.now_ns)
    marks = CallMarks(str(tmp_path))
    for number in range(40):
        marks.start(f"1:{number}")
    assert limits[0] == 1.0, "time that earlier marks did not need"
    assert min(limits) == pytest.approx(0.04)
    assert len(limits) == 5, "the watcher counts as gone"
    assert sum(limits) < 2.3
    _SilentSocket.now_ns += 2_000_000_000
    marks.start("1:41")
    assert len(limits) == 6, "it may be back"


def test_a_killed_watcher_is_not_waited_for(tmp_path: Path) -> None:
    watcher = os.fork()
    if watcher == 0:
        call_marks.write_covered(os.fsencode(tmp_path), [], [])
        os._exit(0)
    os.waitpid(watcher, 0)
    marks = CallMarks(str(tmp_path))
    marks.start("1:1")
    assert not marks.note_read("/etc/hosts")
    marked = [os.readlink(one) for one in tmp_path.iterdir() if one.is_symlink()]
    assert marked == [call_marks.NO_ANSWER]
    assert marks._misses == 0


def _wait_until_quiet(session: Session) -> None:
    """Wait until the watcher has stored all changes. It tells the processes of the run."""
    queue = session.marks._quiet
    assert queue is not None
    latest = time.monotonic() + 20
    while not queue.is_quiet():
        assert time.monotonic() < latest
        os.sched_yield()


def test_a_call_between_two_changes_needs_no_mark_and_owns_its_changes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.call("true")
    marked: list[str] = []
    symlink = os.symlink
    monkeypatch.setattr(
        call_marks.os, "symlink", lambda target, name: (marked.append(name), symlink(target, name))
    )
    for number in range(2, 5):
        _wait_until_quiet(session)
        session.marks.start(f"1:{number}")
        session.marks.end(f"1:{number}")
    assert marked == []
    _wait_until_quiet(session)
    session.marks.start("1:5")
    _wait_until_quiet(session)
    session.marks.start("1:6")
    session.shell("echo of 6 > six.txt; echo x > build/ignored.bin")
    session.marks.end("1:6")
    assert len(marked) == 1, "only the call that changed a file was marked, at its end"
    _wait_until_quiet(session)
    session.marks.end("1:5")
    (session.folder / "own.txt").write_text("after both")
    history = session.stop()
    assert _calls_of(history, b"six.txt") == [("1:5", "1:6")]
    assert _calls_of(history, b"own.txt") == [()]
