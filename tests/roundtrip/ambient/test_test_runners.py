"""A test runner as the command: its times, its temporary folders and the ports of its tests come from the tape."""

import getpass
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CASES = """
import socket, time, unittest

def test_prints(tmp_path):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        (tmp_path / "port").write_text(str(server.getsockname()[1]))
        print("listening at", server.getsockname(), "in", tmp_path)
    time.sleep(0.03)

class Case(unittest.TestCase):
    def test_waits(self):
        time.sleep(0.03)
        print("counted", 7)

if __name__ == "__main__":
    unittest.main()
"""

# Without the plugins of this environment, which take seconds to load.
PYTEST = ("-m", "pytest", "-q", "-s", "-p", "no:cacheprovider")


def play(folder, temporary, *words):
    argv = [
        sys.executable,
        "-m",
        "playhead",
        words[0],
        "--store",
        str(folder / "store"),
        *words[1:],
    ]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": temporary}
    return subprocess.run(
        argv, check=False, cwd=folder, env=env, capture_output=True, timeout=100, text=True
    )


@pytest.fixture
def temporary():
    """Outside of the folders of this very test run, in which its pytest clears up."""
    with tempfile.TemporaryDirectory() as folder:
        # Folders of earlier runs: pytest keeps three of them, and deletes the others.
        for number in range(5):
            earlier = Path(folder, f"pytest-of-{getpass.getuser()}", f"pytest-{number}", "test_it0")
            earlier.mkdir(parents=True, mode=0o700)
            (earlier / "left").write_text("by an earlier run")
        os.chmod(earlier.parents[1], 0o700)
        yield folder


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_test_run_comes_back_with_its_times_folders_and_ports(tmp_path, temporary, runner):
    path = tmp_path / "test_cases.py"
    path.write_text(CASES)
    command = (*PYTEST, path.name) if runner == "pytest" else (path.name,)
    recorded = play(tmp_path, temporary, "record", "--", sys.executable, *command)
    assert recorded.returncode == 0
    if runner == "pytest":
        assert re.search(r"pytest-of-.*/pytest-\d+/test_prints0", recorded.stdout)
        assert re.search(r"2 passed in \d+\.\d\ds", recorded.stdout)
    else:
        assert re.search(r"Ran 1 test in \d+\.\d\d\ds", recorded.stderr)
    replayed = play(tmp_path, temporary, "replay")
    assert replayed.returncode == 0, replayed.stderr
    assert "identical" in replayed.stderr
    assert replayed.stdout == recorded.stdout
    # A number that is not a duration still counts.
    path.write_text(CASES.replace('"counted", 7', '"counted", 8'))
    changed = play(tmp_path, temporary, "replay")
    assert changed.returncode == 3
    assert "counted 8" in changed.stderr
