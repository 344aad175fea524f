"""The package root exports few names; to change them is a decision, made here."""

from importlib.metadata import version

import playhead

SURFACE = [
    "Divergence",
    "PlayheadError",
    "Run",
    "Turn",
    "__version__",
    "current",
    "lane",
    "load",
    "on_event",
    "record",
    "replay_session",
    "replay_worker",
    "seam",
    "tap",
    "tool",
    "turn",
    "watch",
]


def test_the_root_exports_these_names_and_no_others():
    assert sorted(playhead.__all__) == SURFACE


def test_the_root_exports_at_most_twenty_names():
    assert len(playhead.__all__) <= 20


def test_every_exported_name_is_there():
    assert [name for name in playhead.__all__ if getattr(playhead, name, None) is None] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(playhead, "no_such_name")


def test_the_version_of_the_package_is_the_one_that_was_installed():
    assert playhead.__version__ == version("playhead")
