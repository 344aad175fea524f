"""Record the function tools of OpenAI's Agents SDK, where the SDK runs them. Knows `FunctionTool`.

A tool's `on_invoke_tool` cannot be replaced, because the SDK inspects its signature, type and identity.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.guest import NotAsExpected, Patches, holders
from playhead.hooks.tools.tool_calls import Tool, perform_async
from playhead.recording import deck

# Newest first. 0.14 has only the public function. 0.20 adds a second one that also tells whether the SDK wrote the
# output itself, and the public function only calls it.
_RUNNERS = ("_invoke_function_tool_with_metadata", "invoke_function_tool")


def hook(module: ModuleType, patches: Patches) -> None:
    name = next((one for one in _RUNNERS if hasattr(module, one)), None)
    if name is None:
        raise NotAsExpected(f"{module.__name__} has neither {' nor '.join(_RUNNERS)}")
    original = getattr(module, name)
    made = _wrap(original, module)
    # The SDK imports the function into other modules by name, so it is replaced in each of them.
    for owner in holders(name, original):
        patches.replace(owner, name, lambda _: made)


def _wrap(run: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    async def ran(*, function_tool: Any, context: Any, arguments: str) -> Any:
        def live() -> Any:
            return run(function_tool=function_tool, context=context, arguments=arguments)

        if deck.active() is None:
            return await live()
        return await perform_async(lambda: _tool(function_tool, arguments, module), live)

    return ran


def _tool(function_tool: Any, arguments: str, module: ModuleType) -> Tool:
    # Private, and only there since 0.20. Without it the runner returns the plain output.
    result = getattr(module, "_FunctionToolInvocationResult", None)
    return Tool(
        name=str(function_tool.name),
        arguments=_parsed(arguments),
        library="openai-agents",
        function=getattr(function_tool, "__wrapped__", None),
        types=lambda: _types(module),
        kept=None if result is None else _kept,
        build=None if result is None else lambda kept: _built(result, kept),
    )


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments) if arguments else {}
    except ValueError:  # a mistake of the model, which the SDK reports to it
        return arguments


def _kept(result: Any) -> Any:
    """Return only the output if the result has nothing else, because people read tapes."""
    if result.is_sdk_generated_error:
        return {"output": result.output, "is_sdk_generated_error": True}
    return result.output


def _built(result: type, kept: Any) -> Any:
    if isinstance(kept, dict) and kept.get("is_sdk_generated_error") is True and len(kept) == 2:
        return result(kept.get("output"), is_sdk_generated_error=True)
    return result(kept)


def _types(module: ModuleType) -> Named:
    errors = sys.modules.get("agents.exceptions")
    return answers.classes(
        *(getattr(module, name, None) for name in dir(module) if name.startswith("ToolOutput")),
        *(getattr(errors, name, None) for name in dir(errors) if not name.startswith("_")),
    )
