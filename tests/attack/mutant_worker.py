"""Run a verb on each of many mutants in this process: `python -m tests.attack.mutant_worker SEED FIRST COUNT`.

Whatever a tape contains, a verb ends with its answer or with an error of Playhead's own: no traceback, no hang, no
program started, nothing read or written outside. Prints a line of JSON for each finding, and often how far it is, so
that the parent notices a hang that no signal ends.
"""

import contextlib
import gc
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType

from tests.attack.mutants import CANARY, VERBS, Mutants

from playhead.cli import main

# A verb takes 10 ms on an idle machine.
SLOWEST_S = 30
EVERY = 20
# An allocation above this fails, so a mutant cannot take the machine's memory. The limit that counts is `MOST_MB`.
_ADDRESS_SPACE = 4 << 30
_REPOSITORY = Path(__file__).parents[2]
_READABLE = (
    *(sys.prefix, sys.base_prefix, str(_REPOSITORY), "/usr/share", "/usr/lib", "/lib", "/proc", "/sys"),
    *("/dev/null", "/dev/urandom", "/etc/localtime", "/etc/mime.types", "/etc/os-release", "/etc/timezone"),
)  # fmt: skip
_STARTS = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn"),
    "socket.connect",
)  # fmt: skip
_CHANGES = (
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink"),
    *("os.truncate", "os.utime", "shutil.rmtree"),
)  # fmt: skip


class Hangs(BaseException):
    """Not an `Exception`: no handler of Playhead's may swallow it."""


class Watch:
    """Notes what a verb starts, reads and writes where it must not; by Python's audit events."""

    def __init__(self, folder: Path) -> None:
        self.found: list[str] = []
        self.on = False
        self._ours = (f"{folder}/store", f"{folder}/out", f"{folder}/tmp", f"{folder}/home")
        self._readable = (*self._ours, f"{folder}/scratch", *_READABLE)
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            self._opened(*args)
        elif event.startswith(_STARTS):
            self.found.append(f"executed: {event} {str(args)[:200]}")
        elif event in _CHANGES:
            # A link may point to anywhere: only the place of the link itself counts.
            places = args[:2] if event in ("os.rename", "os.link") else args[:1]
            if event == "os.symlink":
                places = args[1:2]
            for place in places:
                if not isinstance(place, str | bytes | os.PathLike):
                    continue
                if event == "os.mkdir" and os.path.isdir(place):
                    continue  # `exist_ok`
                if not self._is_in(place, self._ours):
                    self.found.append(f"changed outside: {event} {os.fsdecode(place)}")

    def _opened(self, path: object, mode: object, flags: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or not isinstance(flags, int):
            return
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        follows = not flags & os.O_NOFOLLOW
        if not self._is_in(path, self._ours if writes else self._readable, follows=follows):
            did = "wrote" if writes else "read"
            if not (writes and os.fsdecode(path) == "/dev/null"):
                self.found.append(f"{did} outside: {os.fsdecode(path)}")

    def _is_in(
        self,
        path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
        roots: tuple[str, ...],
        *,
        follows: bool = False,
    ) -> bool:
        name = os.path.abspath(os.fsdecode(path))
        inside = any(name == root or name.startswith(root + "/") for root in roots)
        if inside and follows and name.startswith(self._ours) and os.path.islink(name):
            return self._is_in(os.path.realpath(name), roots)
        return inside


def attack(seed: int, first: int, count: int, folder: Path) -> None:
    """Run the mutants with these numbers, each with the verb that its number gives."""
    for name in ("tmp", "home"):
        (folder / name).mkdir()
    mutants = Mutants(folder)
    changed = {"PLAYHEAD_HOME": mutants.store, "HOME": folder / "home", "TMPDIR": folder / "tmp"}
    os.environ.update({name: str(path) for name, path in changed.items()}, COLUMNS="100")
    tempfile.tempdir = None
    os.chdir(folder / "home")
    watch = Watch(folder)
    for number, verb in enumerate(VERBS):
        _, code, shown = _run(verb, mutants.lay_unchanged(verb, number), watch)
        if code:
            say(
                number=-1,
                verb=" ".join(verb),
                what=f"does not work unmutated: {code} {shown[-300:]}",
            )
    watch.found.clear()
    for number in range(first, first + count):
        if (number - first) % EVERY == 0:
            say(at=number, mb=most_memory_mb())
        if number % 500 == 0:
            # Cycles that a command leaves behind end with its process, but here they would add up.
            gc.collect()
            for stale in mutants.store.glob("library.db*"):
                stale.unlink()
        verb = VERBS[number % len(VERBS)]
        named = mutants.lay_for(verb, random.Random(f"{seed} {number}"))
        wrong, _, shown = _run(verb, named, watch)
        wrong = wrong or mutants.escaped() or (CANARY in shown and "showed a file from outside")
        for what in [*([wrong] if wrong else ()), *dict.fromkeys(watch.found)]:
            say(number=number, verb=" ".join(verb), what=what[-1500:])
        watch.found.clear()
    say(at=first + count, mb=most_memory_mb())


def _run(verb: tuple[str, ...], named: dict[str, str], watch: Watch) -> tuple[str | None, int, str]:
    """Run a verb: the traceback of an error that is not ours, its exit code, and its output."""
    before = sys.argv
    sys.argv = ["playhead", *(named.get(word, word) for word in verb)]
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape")
    signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(SLOWEST_S)
    watch.on = True
    wrong, code = None, 0
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  this is what the attack looks for
        wrong = traceback.format_exc(limit=-4)
    finally:
        watch.on = False
        signal.alarm(0)
        sys.argv = before
    shown.flush()
    text = shown.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    shown.close()
    if wrong is None and "Traceback (most recent" in text:
        wrong = text[-1500:]
    return wrong, code, text


def _too_slow(_: int, __: FrameType | None) -> None:
    raise Hangs(f"after {SLOWEST_S} s")


def say(**members: object) -> None:
    os.write(1, json.dumps(members).encode() + b"\n")


def most_memory_mb() -> float:
    # Not `ru_maxrss`: Linux counts the parent in, from which this process was forked.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return (
        int(peak[1]) / 1024 if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )


def memory_folder() -> str | None:
    """Return a folder in memory: mutants write many small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    with tempfile.TemporaryDirectory(dir=memory_folder()) as scratch:
        attack(*map(int, sys.argv[1:4]), Path(scratch))
