"""Record the names that Celery makes from the process id, the thread and the address of an object. They are part of the
messages to the broker, so a replay has to use the recorded ones. Knows `celery.utils.nodenames` and `kombu.common`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.guest import Patches, need
from playhead.recording import ambient

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is celery.utils.nodenames."""
    need(module, "anon_nodename")
    patches.replace(module, "anon_nodename", _recorded)


def hook_kombu(module: ModuleType, patches: Patches) -> None:
    """`module` is kombu.common."""
    need(module, "generate_oid")
    patches.replace(module, "generate_oid", _recorded)


def _recorded(original: Callable[..., str]) -> Callable[..., str]:
    def name(*args: Any, **options: Any) -> str:
        found: Any = ambient.read("name", lambda: original(*args, **options))
        return found if isinstance(found, str) else original(*args, **options)

    return name
