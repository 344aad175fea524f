"""Wrote the golden tapes of format 2, once. They are never written again: it does nothing to a
folder that is there. What format 2 adds to format 1 is the order of points.

    python tests/tapes/make_v2.py
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from building import Run  # noqa: E402  the builder lies beside this file, in no package

from playhead.tape.sealed.seal import seal  # noqa: E402

TARGET = HERE / "v2"


def record(folder: Path) -> Run:
    """Two calls in two lanes of an event loop; the second is answered first, and a timer fires."""
    run = Run(folder, "20261115-231105-k3f9")
    root = run.segment("4711")
    known = {"run": run.id, "name": "pair", "tags": {}, "level": "full"}
    root.add("run.start", {**known, "command": ["python", "pair.py"], "cwd": "/srv/agent"})
    call = {"boundary": "http", "name": "GET api.example/wait", "request": {"n": 1}}
    root.add("call", call, lane="main/1")
    root.add("call", {**call, "request": {"n": 2}}, lane="main/2")
    outcome = {"how": "returned", "value": None}
    root.add("outcome", {**outcome, "call": 3, "took_ns": 2_000}, lane="main/2", parent=3)
    root.add("outcome", {**outcome, "call": 2, "took_ns": 5_000}, lane="main/1", parent=2)
    points = [
        [0, 1, 4, 3, 2_000],
        [900, 1, 6, "main/3", "timer:wake", 1, 0.04],
        [100, 1, 6, "main/3", "cancelled:Timeout._on_timeout", 1, 5.0],
        [2_000, 1, 7, 2, 5_000],
        [10, 0, 0, "main/4", "get", 1, None],
    ]
    root.add("order", {"from": 1_004_000, "points": points})
    root.add("run.end", {"status": "ok", "exit_code": 0, "error": None, "took_ns": 30_000})
    root.end()
    run.manifest(exit_code=0, name="pair")
    return run


def sealed(folder: Path) -> None:
    record(folder)
    seal(folder)


def main() -> None:
    for make in (record, sealed):
        folder = TARGET / ("whole" if make is record else make.__name__)
        if folder.exists():
            print(f"{folder} is there: left as it is")
            continue
        make(folder)
        print(f"{folder} {json.dumps(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    main()
