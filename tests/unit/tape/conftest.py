"""Tapes made by hand, for every test of the reading side."""

import importlib.util
import sys
from pathlib import Path

import pytest

from playhead import clock

BUILDING = Path(__file__).parents[2] / "tapes" / "building.py"
spec = importlib.util.spec_from_file_location("tape_building", BUILDING)
building = sys.modules["tape_building"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(building)


@pytest.fixture
def run(tmp_path):
    """A run with nothing in it yet."""
    return building.Run(tmp_path / "run")


@pytest.fixture
def small(tmp_path):
    """A whole run of two processes."""
    return building.small_run(tmp_path / "run")


@pytest.fixture
def running():
    """What a manifest, or a segment's first line, says of a process that is alive: this one."""
    return {
        "pid": clock.pid(),
        "birth": clock.process_birth(clock.pid()),
        "host": clock.host(),
    }
