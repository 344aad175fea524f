"""The command line as its console script runs it, in this process."""

from dataclasses import dataclass

import pytest

from playhead.cli import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in that is nobody's project, and a home that nobody else uses."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return folder


@pytest.fixture
def playhead(here, monkeypatch, capsys):
    """`playhead("list", "--json")` → code, out and err."""

    def run(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["playhead", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return Ended(left.value.code, told.out, told.err)

    return run
