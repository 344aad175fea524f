"""Reports every environment variable that the program sets, at the moment it sets it.

Knows how `os` sets variables; does not know which of them hold secrets.

`os.environ[name] = value`, `os.environ.update`, `load_dotenv(override=True)` and `os.putenv` all end in the
function that the module `os` holds under the name `putenv`, so wrapping that one function sees every
change when it happens and costs a recorded event nothing. The alternatives were measured or ruled out:

- An audit hook (`os.putenv` is an audited event) runs for every audited event of the process, and
  `sys._getframe`, which the recorder itself calls for each event, is one of them. It cannot be removed.
- Comparing the variables at each event costs 1 µs for 40 variables, 7 µs for the 300 of a pod in
  Kubernetes, and never sees `os.putenv`, which leaves `os.environ` as it was.

The wrapper cannot see a program that calls `posix.putenv` or kept a reference to `os.putenv` from before
`install`. For these the recorder compares the variables with `snapshot` every few dozen events.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # Called with a name and its new value, after the variable was set.
    Listener = Callable[[str, str], None]


_listener: Listener | None = None
_original: Any = None


def install(listener: Listener) -> None:
    """Call `listener` for each variable that is set from now on. A second call replaces the listener."""
    global _listener, _original  # noqa: PLW0603  one environment a process
    _listener = listener
    if os.putenv is not _putenv:
        _original, os.putenv = os.putenv, _putenv


def uninstall() -> None:
    """Put the original function back, unless something else has wrapped ours in the meantime."""
    global _listener  # noqa: PLW0603  one environment a process
    _listener = None
    if os.putenv is _putenv:
        os.putenv = _original


def snapshot() -> dict[Any, Any]:
    """Return the variables by name, for comparing with a later snapshot."""
    # The dict behind `os.environ` is copied and compared in C; `os.environ` itself decodes each value in
    # Python. A program may have put a plain dict in its place.
    variables: Any = getattr(os.environ, "_data", os.environ)
    return dict(variables)


def _putenv(name: Any, value: Any, /) -> None:
    """Set an environment variable (`os.putenv`)."""
    # The real function first: if it refuses the name or the value, nothing was set.
    _original(name, value)
    if _listener is not None:
        _listener(os.fsdecode(name), os.fsdecode(value))
