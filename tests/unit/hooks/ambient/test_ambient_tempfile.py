"""Temporary files have the same names again, whoever left something under them."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from playhead import clock
from playhead.hooks.ambient import tempfile_names as ambient_tempfile
from playhead.recording import ambient, lanes


@pytest.fixture
def twice(twice_with, tmp_path, monkeypatch):
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    (tmp_path / "run").mkdir()
    twice = twice_with((ambient_tempfile.hook, tempfile))
    twice.folder = tmp_path / "run"
    return twice


def stemmed():
    fd, path = tempfile.mkstemp(suffix=".txt", prefix="agent-")
    os.close(fd)
    return path


def named():
    with tempfile.NamedTemporaryFile() as file:
        return file.name


def folder_that_goes():
    with tempfile.TemporaryDirectory() as path:
        return path


NAMES = {
    "mkstemp": stemmed,
    "mkdtemp": lambda: tempfile.mkdtemp(),
    "mkdtemp as bytes": lambda: tempfile.mkdtemp(b".x"),
    "mktemp": lambda: tempfile.mktemp(),
    "NamedTemporaryFile": named,
    "TemporaryDirectory": folder_that_goes,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_are_the_same_again(twice, name):
    then, now = twice(lambda: [name() for _ in range(3)])
    assert now == then
    assert len(set(then)) == 3


def test_what_the_recorded_run_left_is_moved_aside_and_not_removed(twice):
    def program():
        folder = Path(tempfile.mkdtemp())
        left = sorted(one.name for one in folder.iterdir())
        (folder / "notes.txt").write_text("x")
        return folder, left

    (then, before), (now, again) = twice(program)
    assert now == then
    assert before == again == []
    aside = then.with_name(f"{then.name}.before-replay-1")
    assert (aside / "notes.txt").exists()


def test_what_was_there_before_the_run_stays_where_it_is(twice):
    def again():
        ambient.source().began_ns = clock.wall_ns() + 10**12
        return stemmed()

    then, now = twice(stemmed, again)
    assert now != then
    assert Path(then).exists()


def test_threads_have_their_own_names_again(twice):
    def program():
        with lanes.lane("main"), ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda _: tempfile.mkdtemp(), range(12)))

    then, now = twice(program)
    assert now == then


def test_a_name_that_cannot_be_freed_is_not_taken(twice, monkeypatch):
    monkeypatch.setattr(os, "rename", _refuse)
    then, now = twice(lambda: tempfile.mkdtemp())
    assert then != now
    assert Path(then).is_dir()
    assert Path(now).is_dir()


def _refuse(*_args):
    raise PermissionError


def test_a_folder_that_is_not_there_is_refused_as_it_was(twice):
    def program():
        with pytest.raises(FileNotFoundError):
            tempfile.mkdtemp(dir="/nowhere/at/all")
        return tempfile.mkdtemp()

    then, now = twice(program)
    assert now == then
