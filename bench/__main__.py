"""Run the benches, all or those named: `python -m bench [--write] [record read …]`.

`--write` puts what they print onto the last part of docs/benchmarks.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.report import put_printed

ALL = (
    "record",
    "read",
    "list",
    "library",
    "tool",
    "order",
    "http",
    "proxy",
    "process",
    "children",
    "shims",
    "ambient",
    "startup",
    "replay",
    "mixed",
    "diff",
    "batch",
    "serve",
    "loop",
    "viewer",
    "workspace",
)


def run(name: str) -> tuple[int, str]:
    """Its exit code, and what it printed: shown as it comes."""
    argv = [sys.executable, "-m", f"bench.{name}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as started:
        lines = []
        for line in started.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return started.returncode, "".join(lines)


def main() -> int:
    write = "--write" in sys.argv
    wanted = [word for word in sys.argv[1:] if word != "--write"] or ALL
    known = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")} - {"peers", "report"}
    failed = []
    for name in wanted:
        if name not in known:
            print(
                f"There is no bench {name!r}; there are {', '.join(sorted(known))}.",
                file=sys.stderr,
            )
            return 2
        print(f"\n## {name}\n", flush=True)
        code, printed = run(name)
        if code:
            failed.append(name)
        if write:
            put_printed(name, printed)
    if failed:
        print(f"\nmissed a goal or failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
