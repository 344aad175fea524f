"""Load the native core: our extension module in C (`native/`). Knows where it lies and when it may be loaded; does not
know what it computes.

Each function of the core has a twin in Python, which is the specification and is used wherever `core` is None. The
core is compiled while the wheel is built, else by the launcher, once per machine, into the user's cache
(`launch/native_build`). It is loaded by its absolute path: nothing enters `sys.path` or `sys.modules`.
"""

from __future__ import annotations

import _imp
import os
import sys

# The interpreter has loaded these two at its start; `importlib.machinery` would load seven more modules.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

from playhead.host.cache_folder import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The hash of the sources, which is part of the file name: a core of other sources is never loaded.
DIGEST = "9cbb96eb2041b202"
_NAME = "_playhead_core"
SOURCES = os.path.join(os.path.dirname(__file__), "native")

# The extension module, and the core of this process. Both are None where they are not loaded, or not yet. The core is
# the extension, unless PLAYHEAD_NATIVE=0: then Python encodes, searches and writes, and only locks use the extension,
# because no locks in Python could take their place (PLAYHEAD_NOTE_LOCKS=0 switches them off).
_extension: Any = None
core: Any = None
_is_settled = _is_forked = False
# Why this process has no core.
reason = "not loaded yet"


def path(env: Mapping[str, str]) -> str:
    """Return the path of the compiled core: in the package if the wheel has it, else in the user's cache."""
    name = file_name()
    packaged = os.path.join(SOURCES, name)
    return packaged if os.path.exists(packaged) else os.path.join(cache_folder(env), name)


def file_name() -> str:
    """Return the name of the compiled core for this platform. musl and the GNU library need different ones."""
    try:
        libc = "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "libc"
    except (ValueError, OSError):
        libc = "libc"
    return f"core-{DIGEST}-{sys.platform}-{os.uname().machine}-{libc}.abi3.so"


def is_off(env: Mapping[str, str]) -> bool:
    """Return whether the user wants Python instead of the core."""
    return env.get("PLAYHEAD_NATIVE") == "0"


def refusal() -> str | None:
    """Return why this interpreter must not load the extension; None: it may."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} has no stable binary interface"
    # The limited API of 3.10 to 3.13 does not exist in builds without the global lock.
    if "t" in getattr(sys, "abiflags", ""):
        return "a free-threaded build"
    if sys.platform != "linux":
        return f"not tested on {sys.platform}"
    return None


def load() -> Any:
    """Return the core, loaded at the first call; None: this process uses Python."""
    extension()
    return core


def extension() -> Any:
    """Return the extension module, loaded at the first call; None: this process has none."""
    global core, reason, _extension, _is_settled  # noqa: PLW0603  one a process
    if _is_settled:
        return _extension
    _is_settled = True
    refused = refusal()
    if refused is not None:
        reason = refused
        return None
    file = path(os.environ)
    if not os.path.exists(file):
        reason = "it was not compiled on this machine"
        return None
    try:
        _extension = _imp.create_dynamic(
            ModuleSpec(_NAME, ExtensionFileLoader(_NAME, file), origin=file)
        )
    except (ImportError, OSError, SystemError) as error:  # of another machine, or not whole
        reason = f"it cannot be loaded: {error}"
        return None
    # The interpreter puts it there; programs that list their modules must not find it.
    sys.modules.pop(_NAME, None)
    if is_off(os.environ):
        reason = "PLAYHEAD_NATIVE=0"
    else:
        core, reason = _extension, ""
    return _extension


def forget() -> None:
    """Let the next `load` try again: the core has been compiled since."""
    global _is_settled  # noqa: PLW0603  one a process
    if _extension is None and not _is_forked:
        _is_settled = False


def _after_fork() -> None:
    """A child uses the core only if its parent had loaded it: the loader may need locks that a thread held which
    the child does not have.
    """
    global reason, _is_settled, _is_forked  # noqa: PLW0603  one a process
    _is_forked = True
    if not _is_settled:
        _is_settled, reason = True, "the process was forked before it was loaded"


os.register_at_fork(after_in_child=_after_fork)
