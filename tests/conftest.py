"""What every test may ask for. Knows where other Pythons are found, and which skips CI forgives."""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

try:
    from hypothesis import settings
except ModuleNotFoundError:  # in the environment of an agent, where some tests of hooks run
    settings = None

ROOT = Path(__file__).parents[1]
GUEST_PYTHONS = ("3.10", "3.11", "3.12", "3.13")

# A skip is a hole in what a run proves. CI forgives those whose reason is found here, in full;
# any other makes the session fail. An interpreter of GUEST_PYTHONS is therefore required in CI.
FORGIVEN_SKIPS = (
    r"only on (macOS|Windows)",
    r"needs Python 3\.14, .*",  # where it can be had
)

# A shell starts `make test &` with both signals ignored, and every program that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


if settings is not None:
    # The same examples in every run of CI: what a random one finds is a bug to look at, not a red build.
    settings.register_profile("ci", derandomize=True, deadline=None)
    settings.register_profile("here", deadline=None)
    settings.load_profile("ci" if os.environ.get("CI") else "here")


@functools.cache
def find_python(version: str) -> str | None:
    """An interpreter of this minor version: this one, pyenv's, one on PATH, or one of uv's."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [
        *map(str, pyenv.glob(f"versions/{version}.*/bin/python")),
        shutil.which(f"python{version}"),
        _uv_python(version),
    ]
    # pyenv leaves a `python3.12` on PATH that exists and does not run: so each one is asked.
    return next((one for one in candidates if one and _version_of(one) == version), None)


def _uv_python(version: str) -> str | None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        return None
    argv = [uv, "python", "find", "--offline", "--no-project", "--system", version]
    found = subprocess.run(argv, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _version_of(python: str) -> str | None:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip()


@pytest.fixture(scope="session", params=GUEST_PYTHONS)
def guest_python(request: pytest.FixtureRequest) -> str:
    """Each Python that an agent may run under, in turn: the path of its interpreter."""
    version: str = request.param
    found = find_python(version)
    if found is None:
        pytest.skip(f"needs Python {version}, found neither by pyenv, nor on PATH, nor by uv")
    return found


class SkipsAreFailures:
    """Fails a session that skipped something for a reason nobody has forgiven."""

    def __init__(self) -> None:
        self.unforgiven: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._look_at(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._look_at(report)

    def _look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = skip_reason(report.longrepr)
        if not any(re.fullmatch(forgiven, reason) for forgiven in FORGIVEN_SKIPS):
            self.unforgiven.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unforgiven and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.unforgiven:
            return
        terminalreporter.section("skipped, and CI does not forgive it", red=True)
        for line in self.unforgiven:
            terminalreporter.line(line)
        terminalreporter.line(
            "Provide what is missing, or forgive its reason in tests/conftest.py."
        )


def skip_reason(longrepr: object) -> str:
    """The words of the person who wrote the skip: pytest keeps (path, line, 'Skipped: words')."""
    words = longrepr[-1] if isinstance(longrepr, tuple) else str(longrepr)
    return str(words).removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    # Runs in stores of tests are marked with a key from the user's data folder: not the person's own.
    data = tempfile.mkdtemp(prefix="playhead-tests-")
    os.environ["XDG_DATA_HOME"] = data
    config.add_cleanup(lambda: shutil.rmtree(data, ignore_errors=True))
    # Under xdist the workers run the tests and the controller hears of every report; it alone
    # decides how the session ends.
    if os.environ.get("CI") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipsAreFailures(), "skips-are-failures")
