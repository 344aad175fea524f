"""Compare the native core with Python at length, and again in a build that checks every access to memory.

python -m tests.native [--count 200000] [--checked 200000] [--events 1000000] [--seed 1]
"""

from __future__ import annotations

import _imp
import argparse
import os
import resource
import subprocess
import sys
import tempfile
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path

from playhead.host import native_core
from playhead.launch import native_build

_CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1")


def _use(file: str) -> None:
    name = "_playhead_core"
    native_core.core = _imp.create_dynamic(
        ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
    )
    native_core._extension, native_core._is_settled = native_core.core, True


def _fuzz(file: str, count: int, seed: int) -> None:
    _use(file)
    from tests.native import differential, exchanges, statuses

    differential.compare(count, seed)
    with tempfile.TemporaryDirectory() as folder:
        redacted = exchanges.compare_exchanges(Path(folder), count // 10, seed)
    with tempfile.TemporaryDirectory() as folder:
        files = statuses.compare_statuses(Path(folder), count // 10, seed)
    print(
        f"{count:,} texts, {count:,} values, {count // 10:,} lines and {count // 10:,} HTTP exchanges with "
        f"{redacted:,} redacted secrets, and the status of {files:,} files are the same (seed {seed})"
    )


def _fuzz_checked(file: str, count: int, seed: int) -> None:
    """In another process: the checking library must be loaded before everything else."""
    library = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    env = {
        **os.environ,
        "LD_PRELOAD": library,
        # Objects of the interpreter in memory of their own: so a byte too many is seen.
        "PYTHONMALLOC": "malloc",
        # The interpreter frees little at its end; `_leaks` looks for leaks.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    }
    argv = [
        sys.executable,
        "-m",
        "tests.native",
        "--use",
        file,
        "--count",
        str(count),
        "--seed",
        str(seed),
    ]
    print("With AddressSanitizer and UndefinedBehaviorSanitizer: ", end="", flush=True)
    subprocess.run(argv, env=env, check=True)


def _leaks(file: str, count: int) -> None:
    """Record many events, with and without secrets: the memory that is used stays as it is."""
    _use(file)
    from playhead.encoding.plain import Keys
    from playhead.redact import Redactor
    from playhead.redact.spans import spans
    from playhead.tape.writer import SegmentWriter

    redactor = Redactor(key=b"k" * 32, variables={"A_SECRET": "hunter2hunter2"})
    search = redactor.native_search()
    assert search is not None
    keys = Keys()
    keys.learn(["text", "n", "tags"])
    values = [
        {"text": "plain words " * 20, "n": 1.5, "tags": [1, None, True]},
        {"text": "password=hunter23 and sk-ant-" + "a1B2" * 8, "n": 2**70},
        {"text": "é日本 \ud800", "n": 3},
        {"text": "sk-ant-" + "a1B2" * 8 + " code=" + "a1" * 9, "tags": ["x/y"]},
    ]
    with tempfile.TemporaryDirectory() as folder:
        writer = SegmentWriter(folder)
        first = 0
        for at in range(count):
            found = native_core.core.encode(values[at & 3], keys.known, 65536, *search)
            raw = found if type(found) is bytes else b"{}" if found is None else found[0]
            writer.append('"a"', '"pid":1,', raw)
            spans(raw)
            if at % 5000 == 0:
                native_core.core.needles((b"abcdef%d" % at,))
                os.ftruncate(writer._fd, 0)
                os.lseek(writer._fd, 0, os.SEEK_SET)
                writer.size = 0
            if at == count // 10:
                first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
        writer.close()
    print(f"{count:,} events: {more:,} KiB more memory than after the first tenth of them")
    assert more < 2048, "the core leaks"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--checked", type=int, default=200_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--use", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.use:
        _fuzz(given.use, given.count, given.seed)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        plain = native_build.build(str(Path(folder) / "core.so"), os.environ)
        checked = native_build.build(str(Path(folder) / "checked.so"), os.environ, *_CHECKS)
        if plain is None or checked is None:
            print(
                "The native core needs a C compiler, the headers of Python and libasan.",
                file=sys.stderr,
            )
            return 1
        _fuzz_checked(checked, given.checked, given.seed + 1)
        _fuzz(plain, given.count, given.seed)
        _leaks(plain, given.events)
    return 0


if __name__ == "__main__":
    sys.exit(main())
