"""Which options keep us out of a Python, and how to say the same without them."""

import subprocess
import sys

import pytest

from playhead.launch.guest.python_argv import is_closed, is_python, opened, version_in

NEW = (3, 11)


@pytest.mark.parametrize(
    "program",
    ["python", "python3", "python3.12", "/usr/bin/python3", "./venv/bin/python", "python3.13t"],
)
def test_an_interpreter_is_known_by_its_name(program):
    assert is_python(program)


@pytest.mark.parametrize(
    "program", ["", "pytest", "pythonic-tool", "ipython", "uv", "/bin/python/x"]
)
def test_other_programs_are_not(program):
    assert not is_python(program)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("python3.12", (3, 12)),
        ("python2.7", (2, 7)),
        ("python3", None),
        ("python", None),
        ("sh", None),
    ],
)
def test_a_name_may_tell_the_version(name, version):
    assert version_in(name) == version


@pytest.mark.parametrize(
    ("words", "closed"),
    [
        (["-I", "x.py"], True),
        (["-E"], True),
        (["-S", "-c", "pass"], True),
        (["-uBI", "x.py"], True),
        (["-W", "error", "-E", "x.py"], True),
        (["-X", "dev", "-I", "-m", "tool"], True),
        (["-Ic", "pass"], True),
        (["x.py", "-I"], False),
        (["-m", "tool", "-E"], False),
        (["-c", "pass", "-S"], False),
        (["-W", "-E", "x.py"], False),
        (["-Werror::E", "x.py"], False),
        (["--check-hash-based-pycs", "always", "x.py", "-I"], False),
        (["-", "-I"], False),
        ([], False),
    ],
)
def test_an_option_keeps_us_out_only_where_it_is_the_interpreters(words, closed):
    assert is_closed(["python", *words]) is closed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-I", "x.py", "-I"], ["-Ps", "x.py", "-I"]),
        (["-E", "x.py"], ["x.py"]),
        (["-EsB", "x.py"], ["-sB", "x.py"]),
        (["-IE", "-m", "tool"], ["-Ps", "-m", "tool"]),
        (["-Ic", "pass"], ["-Psc", "pass"]),
        (["-IW", "error", "x.py"], ["-PsW", "error", "x.py"]),
        (["-W", "error", "-E", "x.py"], ["-W", "error", "x.py"]),
        (["-u", "-E", "-"], ["-u", "-"]),
        (
            ["-E", "--check-hash-based-pycs", "always", "x"],
            ["--check-hash-based-pycs", "always", "x"],
        ),
    ],
)
def test_the_same_is_said_without_closing_the_door(words, said):
    door = opened(["python", *words], NEW)
    assert door.argv == ["python", *said]
    assert door.without_variables


@pytest.mark.parametrize("version", [(3, 10), None])
def test_isolation_has_no_other_word_before_3_11(version):
    door = opened(["python", "-I", "x.py"], version)
    assert door.argv == ["python", "-I", "x.py"]
    assert not door.without_variables


def test_without_site_there_is_no_way_in():
    assert opened(["python", "-S", "-E", "x.py"], NEW).argv == ["python", "-S", "-E", "x.py"]


@pytest.mark.parametrize("flags", [["-I"], ["-IB"], ["-E"], ["-Es"], ["-bE", "-u"]])
def test_python_itself_takes_it_for_the_same(flags):
    look = "import sys; f = sys.flags; print(sys.argv, sys.path, f.no_user_site, f.safe_path, f.bytes_warning)"
    argv = [sys.executable, *flags, "-c", look, "word"]
    env = {"PATH": "/usr/bin:/bin"}
    said = opened(argv, sys.version_info[:2]).argv
    assert said != argv
    first, second = (subprocess.check_output(one, env=env) for one in (argv, said))
    assert first == second
