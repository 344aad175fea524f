"""The native core finds and writes the same as Python, and is loaded only where it may be."""

import hashlib
import os
import re
import subprocess
import sys

import pytest
from tests.native import differential, exchanges
from tests.native.statuses import compare_statuses

from playhead.host import native_core
from playhead.launch import native_build
from playhead.redact import encoded_texts


@pytest.fixture(scope="module")
def core():
    if native_core.refusal() is not None:
        pytest.skip(str(native_core.refusal()))
    native_build.core_of(os.environ)
    found = native_core.extension()
    assert found is not None, "the tests need a C compiler and the headers of Python"
    before, native_core.core = native_core.core, found  # also where PLAYHEAD_NATIVE=0
    yield found
    native_core.core = before


def test_the_file_name_changes_with_the_sources():
    sources = sorted(native_build.SOURCES.glob("*.[ch]"), key=lambda one: one.name)
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]
    assert digest == native_core.DIGEST


def test_the_core_searches_as_far_back_as_python():
    found = re.search(r"#define REACH (\d+)", (native_build.SOURCES / "scan.c").read_text())
    assert found
    assert int(found.group(1)) == encoded_texts.REACH


# `make test-native` compares 200,000, also in a build that checks every access to memory.
@pytest.mark.usefixtures("core")
def test_the_core_finds_and_writes_the_same_as_python():
    differential.compare(800, seed=11)


@pytest.mark.usefixtures("core")
def test_exchanges_with_secrets_are_the_same_bytes_on_both_tapes(tmp_path):
    assert exchanges.compare_exchanges(tmp_path, 80, seed=11) > 300


def test_the_core_refuses_arguments_that_it_cannot_use(core):
    known = core.needles((b"hunter2hunter2",))
    for wrong in (
        lambda: core.needles((b"x",)),
        lambda: core.needles(("text",)),
        lambda: core.needles([b"list"]),
        lambda: core.scanner((), (), (), (), (b"longer than six",), 0, 0, 0),
        lambda: core.scanner((b"no row",), (), (), (), (), 0, 0, 0),
        lambda: core.scanner(((b"x" * 100, 1, 0, 0, 0, 0, 0, b""),), (), (), (), (), 0, 0, 0),
        lambda: core.scanner(((b"xy", 1, 0, 0, 63, 0, 0, b""),), (), (), (), (), 0, 0, 0),
        lambda: core.scanner((), (b"x",), (), (), (), 0, 0, 0),
        lambda: core.scanner((), (), ("text",), (), (), 0, 0, 0),
        lambda: core.clues(known, None, b"raw", 1),
        lambda: core.clues(None, None, b"raw", 1),
        lambda: core.holds(None, b"raw"),
        lambda: core.encode({}, {}, 100, None, None),
        lambda: core.write_line(object(), '"a"', 1, 2, "", b"{}"),
        lambda: core.compare_status(b"/", b"a\0", b""),
        lambda: core.compare_status(b"/", b"a", b"x" * 36),
        lambda: core.compare_status(b"/", b"a\0b", b"x" * 36),
        lambda: core.compare_status(b"/", b"a\0", b"x" * 37),
        lambda: core.compare_status(b"/", "a\0", b"x" * 36),
    ):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            wrong()
    assert core.needles(()) is None
    assert core.holds(known, b"a hunter2hunter2 b")
    assert not core.holds(known, b"")


@pytest.mark.usefixtures("core")
def test_the_core_compares_the_status_of_files_as_python_does(tmp_path):
    assert compare_statuses(tmp_path, 400, seed=4) > 1000


def _said(script, **variables):
    env = {**os.environ, **variables}
    return subprocess.check_output([sys.executable, "-c", script], text=True, env=env).split("\n")


@pytest.mark.usefixtures("core")
def test_a_process_loads_it_by_its_path_alone_and_never_first_after_a_fork():
    script = """
import os, sys
from playhead.host import native_core
before = list(sys.path)
if os.fork() == 0:
    print(native_core.load(), native_core.reason, flush=True)
    os._exit(0)
os.wait()
print(native_core.load().__name__, sys.path == before, "_playhead_core" in sys.modules, flush=True)
if os.fork() == 0:
    print(native_core.load().__name__, flush=True)
    os._exit(0)
os.wait()
"""
    assert _said(script, PLAYHEAD_NATIVE="1") == [
        "None the process was forked before it was loaded",
        "_playhead_core True False",
        "_playhead_core",
        "",
    ]


def test_a_variable_switches_it_off():
    script = "from playhead.host import native_core; print(native_core.load(), native_core.reason)"
    assert _said(script, PLAYHEAD_NATIVE="0") == ["None PLAYHEAD_NATIVE=0", ""]


def test_a_damaged_file_is_not_used(tmp_path):
    script = """
import os
from playhead.host import native_core
native_core.SOURCES = "/nonexistent"  # the package may hold a whole one
os.makedirs(os.path.dirname(native_core.path(os.environ)))
open(native_core.path(os.environ), "wb").write(b"not a library")
print(native_core.load(), native_core.reason.startswith("it cannot be loaded"))
"""
    said = _said(script, XDG_CACHE_HOME=str(tmp_path / "new"), PLAYHEAD_NATIVE="1")
    assert said == ["None True", ""]
