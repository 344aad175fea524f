"""Runs in every Python of a recorded run before its own code. Knows how to load Playhead from where
this file lies, and how to leave no trace of itself; not what a recording is.

Any Python may find this file, so nothing here is newer than 2.7. Versions older than 3.10 are left alone, and so are
interpreters that the hooks are not made for (`_why_not`), with a message. Nothing is ever written to stdout (uv asks
interpreters about themselves and reads their answer there) and nothing is raised.
"""

import gc
import os
import sys

# Python 2 empties a module that nobody holds any more, even while it runs.
_kept = sys.modules[__name__]


def _step_aside():
    # type: () -> str
    """Take this folder off the path again: the program finds what it would have found."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    sys.modules.pop("sitecustomize", None)
    return here


def _load_playhead(here):
    # type: (str) -> None
    """The package this file belongs to, and nothing else of the environment that it is installed in."""
    # By their other names: `importlib` is there already, its package with all that it imports is not.
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    init = os.path.join(root, "__init__.py")
    spec = spec_from_file_location("playhead", init, submodule_search_locations=[root])
    module = sys.modules["playhead"] = module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]


def _why_not():
    # type: () -> str
    """Why this interpreter cannot be recorded; empty: it can. The hooks change types of C and read frames and private
    attributes of asyncio, which other implementations and later versions may lay out differently.
    """
    if sys.implementation.name != "cpython":
        return "its Python is " + sys.implementation.name
    if sys.version_info >= (3, 14):
        return "its Python is " + ".".join(map(str, sys.version_info[:2]))
    if "t" in getattr(sys, "abiflags", ""):
        return "its Python is a free-threaded build"
    return ""


def _begin(here):
    # type: (str) -> None
    if sys.version_info < (3, 10) or "PLAYHEAD_RUN" not in os.environ:
        return
    why = _why_not()
    if why:
        if sys.stderr is not None:
            told = "playhead: this process is not recorded: %s, and CPython 3.10 to 3.13 is supported.\n"
            sys.stderr.write(told % why)
        return
    # Nothing that is loaded here is ever garbage; looking for some takes a tenth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        _load_playhead(here)
        from playhead.launch.guest import bootstrap as guest

        guest.begin()
    except Exception as error:  # noqa: BLE001  whatever it is, the program must not notice
        if sys.stderr is not None:
            told = "playhead: this process is not recorded (%s: %s). The program is not affected.\n"
            sys.stderr.write(told % (type(error).__name__, error))
    finally:
        if collecting:
            gc.enable()


_begin(_step_aside())

# The user's own, as if this one had never been: if there is none, the ImportError says so to `site`,
# which expects it, and no module of this name is left behind.
import sitecustomize  # type: ignore[import-not-found] # noqa: E402, F401
