"""Record the tools of Pydantic AI, where a `FunctionToolset` calls them. Knows toolsets.

`ModelRetry`, deferrals and approvals are exceptions in Pydantic AI. The tape has them as outcomes, because a tool that
asks the model to try again has answered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.guest import Patches, need
from playhead.hooks.tools.tool_calls import Tool, perform_async
from playhead.recording import deck

_CONTENT = (
    "ToolReturn",
    "BinaryContent",
    "BinaryImage",
    "ImageUrl",
    "AudioUrl",
    "DocumentUrl",
    "VideoUrl",
)


def hook(module: ModuleType, patches: Patches) -> None:
    need(module.FunctionToolset, "call_tool")
    # Below the agent's validation and retries, and above the user's function: an attempt that validation rejects is
    # not a call of the tool. MCP toolsets have another `call_tool` and are recorded at the MCP boundary.
    patches.replace(module.FunctionToolset, "call_tool", _wrap)


def _wrap(call_tool: Callable[..., Any]) -> Callable[..., Any]:
    async def called(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        if deck.active() is None:
            return await call_tool(self, name, tool_args, ctx, tool)
        return await perform_async(
            lambda: _tool(name, tool_args, ctx, tool),
            lambda: call_tool(self, name, tool_args, ctx, tool),
        )

    return called


def _tool(name: str, arguments: dict[str, Any], ctx: Any, tool: Any) -> Tool:
    # The name that the model used: a toolset may be prefixed or renamed on its way there.
    used = getattr(ctx, "_dispatched_tool_name", None) or getattr(ctx, "tool_name", None) or name
    return Tool(
        name=str(used),
        arguments=dict(arguments),
        library="pydantic-ai",
        function=_function_of(tool),
        types=_types,
    )


def _function_of(tool: Any) -> Any:
    """Return the user's function. `call_func` is a method of the schema that was made from it."""
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def _types() -> Named:
    # Every public exception may be an outcome: `ModelRetry`, `CallDeferred`, `ApprovalRequired` and
    # `ToolRetryError` control the agent's loop and must be raised again as themselves.
    errors, messages = (
        sys.modules.get("pydantic_ai.exceptions"),
        sys.modules.get("pydantic_ai.messages"),
    )
    return answers.classes(
        *(getattr(errors, name, None) for name in dir(errors) if not name.startswith("_")),
        *(getattr(messages, name, None) for name in _CONTENT),
    )
