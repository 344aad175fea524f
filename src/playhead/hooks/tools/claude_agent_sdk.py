"""Record the in-process tools of Claude's Agent SDK, where its in-process MCP server calls them.

The agent itself is another program, whose traffic is recorded where it leaves the machine. Knows
`create_sdk_mcp_server`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.tools.tool_calls import Tool, effect_hinted, perform_async
from playhead.recording import deck


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "SdkMcpTool")
    # The SDK closes over the tools here; afterwards no public object leads to their handlers.
    patches.replace(module, "create_sdk_mcp_server", _wrap)


def _wrap(create: Callable[..., Any]) -> Callable[..., Any]:
    def created(name: str, version: str = "1.0.0", tools: Any = None) -> Any:
        if tools:
            # Copies: the program may give the same tool objects to a server outside of the recording.
            tools = [dataclasses.replace(tool, handler=_handler(tool)) for tool in tools]
        return create(name, version, tools)

    return created


def _handler(tool: Any) -> Callable[[Any], Any]:
    handler = tool.handler

    async def handled(arguments: Any) -> Any:
        if deck.active() is None:
            return await handler(arguments)
        return await perform_async(lambda: _tool(tool, arguments), lambda: handler(arguments))

    return handled


def _tool(tool: Any, arguments: Any) -> Tool:
    return Tool(
        name=str(tool.name),
        arguments=arguments,
        library="claude-agent-sdk",
        function=tool.handler,
        effect=effect_hinted(getattr(tool, "annotations", None)),
    )
