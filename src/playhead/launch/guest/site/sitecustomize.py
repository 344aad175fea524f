"""Runs in every Python of a recorded run before the program's own code. Knows how to load Playhead from the folder
above this file, and how to leave no trace; does not know what a recording is.

Any Python may find this file, so it uses no syntax newer than 2.7. Versions older than 3.10 are left alone, and so
are interpreters that the hooks do not support (`_why_not`), with a message. Nothing is ever written to stdout (uv
queries interpreters and reads their answer there) and nothing is raised.
"""

import gc
import os
import sys

# Python 2 clears a module that has no references left, even while it runs.
_kept = sys.modules[__name__]


def _step_aside():
    # type: () -> str
    """Remove this folder from the path again, so that the program finds the modules that it would find without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    sys.modules.pop("sitecustomize", None)
    return here


def _load_playhead(here):
    # type: (str) -> None
    """Load the package that this file belongs to, and nothing else of the environment in which it is installed."""
    # Under their internal names: the code of `importlib` is loaded already, its package and the imports of it are not.
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    init = os.path.join(root, "__init__.py")
    spec = spec_from_file_location("playhead", init, submodule_search_locations=[root])
    module = sys.modules["playhead"] = module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]


def _why_not():
    # type: () -> str
    """Return why this interpreter cannot be recorded; empty: it can. The hooks change C types and read frames and
    private attributes of asyncio, which may be different in other implementations and later versions.
    """
    if sys.implementation.name != "cpython":
        return "its Python is " + sys.implementation.name
    if sys.version_info >= (3, 14):
        return "its Python is " + ".".join(map(str, sys.version_info[:2]))
    if "t" in getattr(sys, "abiflags", ""):
        return "its Python is a free-threaded build"
    return ""


def _is_query():
    # type: () -> bool
    """Return whether uv queries this interpreter. It is no part of the program: uv asks only if its cache has no
    answer, so a replay would have other processes than the recording, and give their seeds to the agent.
    """
    return any("get_interpreter_info" in word for word in getattr(sys, "orig_argv", ()))


def _begin(here):
    # type: (str) -> None
    if sys.version_info < (3, 10) or "PLAYHEAD_RUN" not in os.environ or _is_query():
        return
    why = _why_not()
    if why:
        if sys.stderr is not None:
            message = "playhead: this process is not recorded: %s, and CPython 3.10 to 3.13 is supported.\n"
            sys.stderr.write(message % why)
        return
    # Nothing that is loaded here becomes garbage, and the garbage collector would take a tenth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        _load_playhead(here)
        from playhead.launch.guest import bootstrap as guest

        guest.begin()
    except Exception as error:  # noqa: BLE001  no error may reach the program
        if sys.stderr is not None:
            message = (
                "playhead: this process is not recorded (%s: %s). The program is not affected.\n"
            )
            sys.stderr.write(message % (type(error).__name__, error))
    finally:
        if collecting:
            gc.enable()


_begin(_step_aside())

# Import the user's own sitecustomize, as if this one did not exist. If there is none, `site` expects the ImportError,
# and no module of this name is left behind.
import sitecustomize  # type: ignore[import-not-found] # noqa: E402, F401
