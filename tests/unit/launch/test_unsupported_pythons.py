"""Interpreters that the hooks are not made for are left alone, with a message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead

SITE = Path(playhead.__file__).parent / "launch" / "guest" / "site" / "sitecustomize.py"
PROGRAM = """
import sys
{change}
try:
    exec(compile(open({site!r}).read(), {site!r}, "exec"), {{"__name__": "sys", "__file__": {site!r}}})
except ImportError:
    pass
print("playhead" in sys.modules)
"""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("sys.version_info = (3, 14, 0, 'final', 0)", "its Python is 3.14"),
        ("sys.implementation.name = 'pypy'", "its Python is pypy"),
        ("sys.abiflags = 't'", "a free-threaded build"),
    ],
)
def test_an_interpreter_that_is_not_supported_is_not_hooked_and_says_so(change, named):
    program = PROGRAM.format(change=change, site=str(SITE))
    env = {**os.environ, "PLAYHEAD_RUN": "{}"}
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "False\n"
    assert named in ended.stderr
    assert "CPython 3.10 to 3.13 is supported" in ended.stderr
