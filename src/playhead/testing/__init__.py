"""A scripted LLM and an HTTP site on loopback, for tests, demos and benchmarks.

    from playhead.testing import Reply, ScriptedLLM, ToolCall

Names load what they need when they are first used: the words of a script are light, the
servers bring asyncio with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.testing.scripted_llm.llm_script import (
        Cut,
        Failure,
        Reply,
        Script,
        ToolCall,
        Usage,
        When,
    )
    from playhead.testing.scripted_llm.received import Message, Request
    from playhead.testing.scripted_llm.script_file import ScriptError, load_script
    from playhead.testing.scripted_llm.server import ScriptedLLM, serve
    from playhead.testing.scripted_llm.server_http1 import Exchange
    from playhead.testing.site import HttpSite

__all__ = [
    "Cut",
    "Exchange",
    "Failure",
    "HttpSite",
    "Message",
    "Reply",
    "Request",
    "Script",
    "ScriptError",
    "ScriptedLLM",
    "ToolCall",
    "Usage",
    "When",
    "load_script",
    "replay",
    "serve",
]

_HOMES = {
    **dict.fromkeys(
        ("Cut", "Failure", "Reply", "Script", "ToolCall", "Usage", "When"),
        "scripted_llm.llm_script",
    ),
    **dict.fromkeys(("ScriptError", "load_script"), "scripted_llm.script_file"),
    **dict.fromkeys(("Message", "Request"), "scripted_llm.received"),
    **dict.fromkeys(("ScriptedLLM", "serve"), "scripted_llm.server"),
    "Exchange": "scripted_llm.server_http1",
    "HttpSite": "site",
    "replay": "replaying",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
