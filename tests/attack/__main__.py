"""`make test-attack`: run every attack within a time limit, print the counts, and fail if one succeeded."""

import argparse
import os
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

from tests.attack import parts
from tests.attack.mutant_pool import mutated
from tests.attack.result import KINDS, Finding, Row

Part = Callable[[float], Row]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--shell", type=int, default=500, help="mutants through the command line")
    parser.add_argument("--kills", type=int, default=1000, help="runs killed at a random moment")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="time limit for all of it")
    parser.add_argument("--only", metavar="WORD", help="only the parts whose name has this word")
    given = parser.parse_args()
    # Commands start as they do for users: without it, each would compile all modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    rows = []
    for what, part in _parts(given):
        if given.only is None or given.only in what:
            rows.append(_run(what, part, began + given.minutes * 60))
    return _print_result(rows, time.monotonic() - began)


def _parts(given: argparse.Namespace) -> Iterator[tuple[str, Part]]:
    """Yield the parts: first those whose findings take longest to mend."""
    yield "secret matrix", parts.secrets
    yield "twelve agents in four shapes", parts.agents
    yield "bombs", parts.bombed
    yield "kill -9", lambda until: parts.killed(given.kills, given.seed, until)
    for what, paths in parts.SUITES.items():
        # `paths=paths`: the loop goes on before the part runs.
        yield what, lambda until, what=what, paths=paths: parts.suite(what, paths, until)  # type: ignore[misc]
    yield (
        "mutants from the shell",
        lambda until: parts.from_the_shell(given.shell, given.seed, until),
    )
    yield "mutants in process", lambda until: mutated(given.mutants, given.seed, until)


def _run(what: str, part: Part, until: float) -> Row:
    began = time.monotonic()
    if began > until:
        row = Row(what, unfinished=True)
    else:
        try:
            row = part(until)
        except Exception:  # noqa: BLE001  the other parts still run, and the table names it
            row = Row(what, found=[Finding("broken", traceback.format_exc()[-1500:])])
    row.seconds = time.monotonic() - began
    print(row.line, flush=True)
    for one in row.found[:20]:
        print(f"       {one.kind}: {one.what[:500]}", flush=True)
    return row


def _print_result(rows: list[Row], seconds: float) -> int:
    print("\n" + "\n".join(row.line for row in rows) + "\n")
    found = Counter(one.kind for row in rows for one in row.found)
    for kind, words in KINDS.items():
        print(f"{found[kind]:>9,} {words}")
    print(f"{max((row.mb for row in rows), default=0):>9,.0f} MB in the largest process")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (used.ru_utime + used.ru_stime) / 60
    late = sum(row.unfinished for row in rows)
    unfinished = f", {late} parts out of time" if late else ""
    tried = sum(row.tried for row in rows)
    print(
        f"{tried:,} attacks, {found.total():,} succeeded{unfinished}, "
        f"{seconds / 60:.1f} min, {cpu:.1f} min of CPU time"
    )
    return 1 if found or late else 0


if __name__ == "__main__":
    sys.exit(main())
