"""The programs on our pages run, and leave whole tapes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.tape.care.verify import verify

DOCS = Path(__file__).parents[2] / "docs"
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAMS = [
    pytest.param(program, id=f"{page}-{number}")
    for page in ("getting-started.md", "recording.md")
    for number, program in enumerate(PROGRAM.findall((DOCS / page).read_text(encoding="utf-8")), 1)
]


def test_there_are_programs():
    assert len(PROGRAMS) >= 7


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_on_a_page_runs(tmp_path, program):
    environ = {**os.environ, "PLAYHEAD_HOME": str(tmp_path / "tapes")}
    argv = [sys.executable, "-W", "error", "-c", program]
    ended = subprocess.run(
        argv, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    runs = list((tmp_path / "tapes" / "runs").glob("*"))
    assert bool(runs) == ("playhead.record" in program)
    assert all(verify(run).ok for run in runs)
