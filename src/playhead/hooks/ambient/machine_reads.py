"""Record readings of the machine that programs print: load, processor time, memory, free disk space, name of the host.

The reading is made in a replay as well, because it may wait (`psutil.cpu_percent(0.1)`) and because its result has the
type that the program expects; the recorded values take the place of the new ones. Knows functions of `os`, `resource`,
`socket` and `psutil`.
"""

from __future__ import annotations

from playhead.hooks.guest import Patches
from playhead.hooks.replacements import Builtin, replace_copies
from playhead.recording import ambient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_PSUTIL = (
    *("cpu_percent", "cpu_times", "cpu_times_percent", "cpu_freq", "cpu_stats", "getloadavg"),
    *("virtual_memory", "swap_memory", "net_io_counters", "disk_io_counters", "boot_time"),
)
_PROCESS = ("cpu_percent", "cpu_times", "memory_info", "memory_full_info", "memory_percent")


def hook_os(module: ModuleType, patches: Patches) -> None:
    """`module` is os. `statvfs` is also the free space of `shutil.disk_usage` and `psutil.disk_usage`."""
    _replace(module, ("getloadavg", "times", "statvfs"), patches)


def hook_resource(module: ModuleType, patches: Patches) -> None:
    _replace(module, ("getrusage",), patches)


def hook_socket(module: ModuleType, patches: Patches) -> None:
    """`module` is socket: a tape may be replayed on another machine."""
    _replace(module, ("gethostname",), patches)


def hook_psutil(module: ModuleType, patches: Patches) -> None:
    _replace(module, _PSUTIL, patches)
    for name in _PROCESS:
        if hasattr(module.Process, name):
            patches.replace(module.Process, name, _reading(f"process {name}"))


def _replace(module: ModuleType, names: tuple[str, ...], patches: Patches) -> None:
    made: dict[int, Any] = {}
    for name in names:
        if hasattr(module, name):
            original = getattr(module, name)
            patches.replace(module, name, _builtin(name))
            made[id(original)] = getattr(module, name)
    replace_copies(patches, made)


def _builtin(kind: str) -> Callable[[Any], Builtin]:
    return lambda original: Builtin(_reading(kind)(original))


def _reading(kind: str) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **options: Any) -> Any:
            real = original(*args, **options)
            if isinstance(real, tuple):
                # A named tuple (psutil) is made from its values, a C structure and a tuple from a sequence of them.
                values = ambient.read(f"{kind} {len(real)}", lambda: list(real))
                return getattr(type(real), "_make", type(real))(values)
            if isinstance(real, (int, float, str)):
                return ambient.read(kind, lambda: real)
            return real  # for each processor or disk: not recorded

        return read

    return wrap
