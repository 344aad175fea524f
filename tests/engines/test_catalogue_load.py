"""Fifty writers and fifty readers of a catalogue in PostgreSQL: no error, nothing lost.

`python -m bench.teams catalogue` does the same at a million runs for five minutes.
"""

import os

import pytest
from bench.teams.catalogue import ask_all, fill
from bench.teams.load import bench_load
from tests import postgres_server

from playhead.library import engine
from playhead.library.postgres import PostgresDatabase

pytestmark = pytest.mark.engines
RUNS = int(os.environ.get("PLAYHEAD_ENGINE_RUNS", "20000"))
MINUTES = float(os.environ.get("PLAYHEAD_ENGINE_MINUTES", "0.3"))


def test_fifty_writers_and_fifty_readers_lose_nothing(tmp_path):
    (tmp_path / "runs").mkdir()
    with postgres_server.running() as (folder, _):
        url = f"postgresql+psycopg://playhead@/postgres?host={folder}"
        db = PostgresDatabase(tmp_path, url, "playhead_bench")
        engine.use(tmp_path, db)
        fill(db, RUNS)
        assert len(ask_all(db, tmp_path, RUNS)) == 11
        (told, *errors) = bench_load(url, "playhead_bench", tmp_path, MINUTES)
        engine.use(tmp_path, None)
    assert errors == []
    assert "0 errors, 0 runs and 0 calls lost" in told.measured, told
