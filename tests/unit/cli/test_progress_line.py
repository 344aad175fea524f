import io

from playhead.cli import progress_line as progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_a_bar_shows_how_far_long_work_has_come(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_NS", -1)
    with progress.bar("Reading runs") as tell:
        tell(5, 20)
    assert "Reading runs" in terminal.getvalue()
    assert "5/20" in terminal.getvalue()


def test_a_bar_says_nothing_of_work_that_is_done_before_anybody_wonders(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_NS", 10**15)
    with progress.bar("Reading runs") as tell:
        tell(20, 20)
    assert "Reading" not in terminal.getvalue()


def test_there_is_no_bar_where_nobody_watches(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with progress.bar("Reading runs") as tell:
        assert tell is None


def test_a_tally_says_how_far_it_is_and_leaves_an_empty_line(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_NS", -1)
    with progress.tally("Looking at new runs") as tell:
        tell(2000, 100_000)
    assert terminal.getvalue() == "\rLooking at new runs: 2,000 of 100,000 \r\x1b[K"


def test_there_is_no_tally_where_nobody_watches(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with progress.tally("Looking at new runs") as tell:
        assert tell is None
