"""Run the benches, all or those named: `python -m bench [record read …]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALL = (
    "record",
    "read",
    "list",
    "library",
    "tool",
    "http",
    "proxy",
    "process",
    "shims",
    "ambient",
    "startup",
    "replay",
    "mixed",
    "diff",
    "batch",
    "serve",
    "loop",
)


def main() -> int:
    wanted = sys.argv[1:] or ALL
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
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nmissed a goal or failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
