"""A module that is put off is imported when it is first used, and behaves as itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from playhead.host.later import Later

SOURCE = Path(__file__).parents[3] / "src"


def test_nothing_is_imported_before_the_first_use():
    program = """
import sys
from playhead.host.later import Later
colorsys = Later("colorsys")
print("colorsys" in sys.modules, colorsys.rgb_to_hsv(0, 0, 0), "colorsys" in sys.modules)
"""
    env = {"PYTHONPATH": str(SOURCE)}
    told = subprocess.check_output([sys.executable, "-c", program], env=env, text=True)
    assert told == "False (0.0, 0.0, 0) True\n"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = Later("colorsys").no_such_name


def test_a_module_that_is_not_there_is_an_import_error():
    with pytest.raises(ModuleNotFoundError):
        _ = Later("no_such_module").name


def test_a_pattern_is_compiled_when_it_is_first_used():
    program = """
import sys
from playhead.host.later import pattern
word = pattern("[a-z]+")
print("re" in sys.modules, word.fullmatch("abc") is not None, word.search("1"), "re" in sys.modules)
"""
    env = {"PYTHONPATH": str(SOURCE)}
    argv = [sys.executable, "-S", "-c", program]
    assert subprocess.check_output(argv, env=env, text=True) == "False True None True\n"
