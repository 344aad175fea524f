import os

import pytest

from playhead.tape.output_position import OutputGauge, OutputPage, forget


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def read(page, fd, size):
    page.begin("stdout")
    data = os.read(fd, size)
    page.end("stdout", len(data))
    return data


def test_what_was_written_is_what_was_read_and_what_still_waits(tmp_path, pipe):
    source, entry = pipe
    page = OutputPage(tmp_path, {"stdout": source})
    gauge = OutputGauge(tmp_path)
    assert gauge.read(entry) == ("stdout", 0)
    os.write(entry, b"hello")
    assert gauge.read(entry) == ("stdout", 5)
    assert read(page, source, 3) == b"hel"
    assert gauge.read(entry) == ("stdout", 5)
    os.write(entry, b", world")
    assert read(page, source, 100) == b"lo, world"
    assert gauge.read(entry) == ("stdout", 12)


def test_another_pipe_or_file_is_not_the_commands_output(tmp_path, pipe):
    OutputPage(tmp_path, {"stdout": pipe[0]})
    gauge = OutputGauge(tmp_path)
    other = os.pipe()
    with (tmp_path / "file").open("wb") as file:
        assert gauge.read(other[1]) is gauge.read(file.fileno()) is None
    for fd in other:
        os.close(fd)
    assert gauge.read(other[0]) is None


def test_a_reader_that_never_comes_back_is_not_waited_for(tmp_path, pipe):
    page = OutputPage(tmp_path, {"stderr": pipe[0]})
    page.begin("stderr")
    assert OutputGauge(tmp_path).read(pipe[1]) is None
    page.end("stderr", 7)
    assert OutputGauge(tmp_path).read(pipe[1]) == ("stderr", 7)


def test_without_a_page_nothing_is_known(tmp_path, pipe):
    assert OutputGauge(tmp_path).read(pipe[1]) is None
    OutputPage(tmp_path, {"stdout": pipe[0]})
    forget(tmp_path)
    forget(tmp_path)
    assert OutputGauge(tmp_path).read(pipe[1]) is None
    assert list(tmp_path.iterdir()) == []
