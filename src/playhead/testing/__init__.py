"""A scripted LLM and an HTTP site on loopback, for tests, demos and benchmarks.

    from playhead.testing import Reply, ScriptedLLM, ToolCall

A name loads its module when it is first used: the words of a script are light, the servers bring
asyncio with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.llm.llm_script import Cut, Reply, ToolCall, When
    from playhead.llm.llm_script import LlmScript as Script
    from playhead.llm.llm_script import ReceivedMessage as Message
    from playhead.llm.llm_script import ReceivedRequest as Request
    from playhead.llm.llm_script import ScriptedFailure as Failure
    from playhead.llm.llm_script import ScriptedUsage as Usage
    from playhead.testing.scripted_llm.script_file import ScriptError, load_script
    from playhead.testing.scripted_llm.server import ScriptedLLM, serve
    from playhead.testing.scripted_llm.server_http1 import ServedExchange as Exchange
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
    "explain",
    "load_script",
    "replay",
    "serve",
]

_SCRIPT = "playhead.llm.llm_script"
_SERVERS = "playhead.testing.scripted_llm"

# The public name → its module and its name there. Inside the package each class name is used once.
_HOMES = {
    "Cut": (_SCRIPT, "Cut"),
    "Exchange": (f"{_SERVERS}.server_http1", "ServedExchange"),
    "Failure": (_SCRIPT, "ScriptedFailure"),
    "HttpSite": ("playhead.testing.site", "HttpSite"),
    "Message": (_SCRIPT, "ReceivedMessage"),
    "Reply": (_SCRIPT, "Reply"),
    "Request": (_SCRIPT, "ReceivedRequest"),
    "Script": (_SCRIPT, "LlmScript"),
    "ScriptError": (f"{_SERVERS}.script_file", "ScriptError"),
    "ScriptedLLM": (f"{_SERVERS}.server", "ScriptedLLM"),
    "ToolCall": (_SCRIPT, "ToolCall"),
    "Usage": (_SCRIPT, "ScriptedUsage"),
    "When": (_SCRIPT, "When"),
    "load_script": (f"{_SERVERS}.script_file", "load_script"),
    "explain": ("playhead.testing.explained", "explain"),
    "replay": ("playhead.testing.taperun", "replay"),
    "serve": (f"{_SERVERS}.server", "serve"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value
