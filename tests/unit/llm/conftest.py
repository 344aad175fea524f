"""Answers and questions as the real APIs send them, byte for byte: see samples/."""

from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def sample() -> Callable[[str], bytes]:
    return lambda name: (SAMPLES / name).read_bytes()
