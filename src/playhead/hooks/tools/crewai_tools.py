"""Record CrewAI's tools where crews run them: `BaseTool.run`, and `invoke` of a structured tool.

Tools have the names that the model sees (lower case, underscores). A replay keeps counting their uses, because a crew
stops offering a tool that has reached its limit. Knows the modules of both kinds of tools.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.guest import NotAsExpected, Patches
from playhead.hooks.tools.tool_calls import Tool, perform, perform_async
from playhead.recording import deck

Arguments = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def hook(module: ModuleType, patches: Patches) -> None:
    if hasattr(module, "BaseTool"):
        # `Tool` (made by the decorator) overrides `run` of `BaseTool`, so both are replaced; a tool that
        # inherits is recorded once, because the inner call finds its claim.
        for name in ("BaseTool", "Tool"):
            kind = getattr(module, name, None)
            if kind is not None:
                patches.replace(kind, "run", lambda run: _wrap(run, _by_name, "_claim_usage"))
                patches.replace(
                    kind, "arun", lambda run: _wrap_async(run, _by_name, "_claim_usage")
                )
    elif hasattr(module, "CrewStructuredTool"):
        kind = module.CrewStructuredTool
        # Agents call a structured tool, which wraps a BaseTool: the names of the methods and of the private
        # usage counters differ from those above.
        patches.replace(kind, "invoke", lambda run: _wrap(run, _input, "_increment_usage_count"))
        patches.replace(
            kind, "ainvoke", lambda run: _wrap_async(run, _input, "_increment_usage_count")
        )
    else:
        raise NotAsExpected(f"{module.__name__} has neither BaseTool nor CrewStructuredTool")


def _wrap(run: Callable[..., Any], arguments: Arguments, count: str) -> Callable[..., Any]:
    def ran(self: Any, *args: Any, **kwargs: Any) -> Any:
        if deck.active() is None:
            return run(self, *args, **kwargs)
        return perform(
            lambda: _tool(self, arguments(args, kwargs), count),
            lambda: run(self, *args, **kwargs),
        )

    return ran


def _wrap_async(run: Callable[..., Any], arguments: Arguments, count: str) -> Callable[..., Any]:
    async def ran(self: Any, *args: Any, **kwargs: Any) -> Any:
        if deck.active() is None:
            return await run(self, *args, **kwargs)
        return await perform_async(
            lambda: _tool(self, arguments(args, kwargs), count),
            lambda: run(self, *args, **kwargs),
        )

    return ran


def _by_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return {**kwargs, "args": list(args)} if args else dict(kwargs)


def _input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = args[0] if args else kwargs.get("input")
    return given if isinstance(given, dict) else {"input": given}


def _tool(tool: Any, arguments: Any, count: str) -> Tool:
    def counted(value: Any) -> Any:
        # The private counter is increased inside `run`, which a replay does not call. Without this a tool
        # with `max_usage_count` would stay available in a replay. A version without it is left alone.
        getattr(tool, count, lambda: None)()
        return value

    return Tool(
        name=_name(str(tool.name)),
        arguments=arguments,
        library="crewai",
        # The user's function, which may be a `playhead.tool` already: then it is the same call.
        function=getattr(tool, "func", None) or type(tool)._run,
        types=_types,
        build=counted,
    )


def _name(name: str) -> str:
    # CrewAI's own rule, looked up and not copied: the model's request has the sanitised name, and the tape
    # links a tool call to that request by name.
    texts = sys.modules.get("crewai.utilities.string_utils")
    sanitize = getattr(texts, "sanitize_tool_name", None)
    return str(sanitize(name)) if sanitize is not None else name


def _types() -> dict[str, type]:
    failure, structured = (
        sys.modules.get(f"crewai.tools.{name}") for name in ("tool_failure", "structured_tool")
    )
    return answers.classes(
        *(getattr(failure, name, None) for name in ("ToolFailure", "ToolFailureReason")),
        getattr(structured, "ToolUsageLimitExceededError", None),
    )
