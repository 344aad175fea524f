"""CI counts a skip that nobody forgave as a failure; a person at a desk is only told."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPS = """
import pytest

def test_passes(): pass

def test_skips(): pytest.skip({reason!r})
"""


def run_pytest(folder: Path, *options: str, ci: str | None) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))
    }
    if ci is not None:
        env["CI"] = ci
    # Importing every plugin that is installed takes six times as long as the rest of these sessions.
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_ci_fails_on_a_skip_that_nobody_forgave_and_names_it(tmp_path, workers):
    (tmp_path / "test_it.py").write_text(SKIPS.format(reason="no browser"))
    ended = run_pytest(tmp_path, "-p", "xdist", "-n", workers, ci="true")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "test_it.py::test_skips: no browser" in ended.stdout


def test_ci_fails_on_a_module_that_skips_itself(tmp_path):
    (tmp_path / "test_it.py").write_text("import pytest\npytest.importorskip('no_such_library')\n")
    (tmp_path / "test_other.py").write_text("def test_passes(): pass\n")
    ended = run_pytest(tmp_path, ci="true")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "no_such_library" in ended.stdout.partition("CI does not forgive")[2]


@pytest.mark.parametrize("reason", ["only on macOS", "needs Python 3.14, found nowhere"])
def test_ci_forgives_a_skip_whose_reason_is_listed(tmp_path, reason):
    (tmp_path / "test_it.py").write_text(SKIPS.format(reason=reason))
    ended = run_pytest(tmp_path, ci="true")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_ci_does_not_take_an_expected_failure_for_a_skip(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.xfail\ndef test_fails(): assert False\n"
    )
    ended = run_pytest(tmp_path, ci="true")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_at_a_desk_a_skip_does_not_fail_the_session(tmp_path):
    (tmp_path / "test_it.py").write_text(SKIPS.format(reason="no browser"))
    ended = run_pytest(tmp_path, ci=None)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_guest_python_is_the_version_it_was_asked_for(request, guest_python):
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    said = subprocess.check_output([guest_python, "-c", ask], text=True).strip()
    assert said == request.node.callspec.params["guest_python"]
