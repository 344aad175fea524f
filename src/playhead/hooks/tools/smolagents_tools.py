"""Record the tools of smolagents, where an agent or code that a model wrote calls them. Knows `Tool`.

A `CodeAgent` runs the model's code, which passes arguments by position as often as by name. The tool's `inputs` give
the names of positional arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks import answers
from playhead.hooks.guest import Patches, need
from playhead.hooks.tools.tool_calls import Tool, perform
from playhead.recording import deck


def hook(module: ModuleType, patches: Patches) -> None:
    # `__call__` and not `forward`: every tool overrides `forward`, and all inherit `__call__`.
    need(module.Tool, "__call__", "forward")
    patches.replace(module.Tool, "__call__", lambda call: _wrap(call, module))


def _wrap(call: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    # `sanitize_inputs_outputs` is keyword-only and set by agents. It converts inputs and outputs inside the
    # call, so a replay converts the taped value itself.
    def called(self: Any, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
        def live() -> Any:
            return call(self, *args, sanitize_inputs_outputs=sanitize_inputs_outputs, **kwargs)

        def build(value: Any) -> Any:
            return _typed(module, self, value) if sanitize_inputs_outputs else value

        if deck.active() is None:
            return live()
        return perform(lambda: _tool(self, args, kwargs, build), live)

    return called


def _tool(
    tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any], build: Callable[[Any], Any]
) -> Tool:
    return Tool(
        name=str(getattr(tool, "name", type(tool).__name__)),
        arguments=_arguments(tool, args, kwargs),
        library="smolagents",
        function=getattr(type(tool), "forward", None),
        types=_types,
        build=build,
    )


def _arguments(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = list(getattr(tool, "inputs", None) or ())
    # A model may pass all arguments in one dict; smolagents unpacks it under the same condition.
    if (
        len(args) == 1
        and not kwargs
        and isinstance(args[0], dict)
        and all(key in names for key in args[0])
    ):
        return dict(args[0])
    arguments = dict(zip(names, args, strict=False))
    # More than the tool declares: `forward` will refuse them, and the tape shows why.
    if len(args) > len(names):
        arguments["args"] = list(args[len(names) :])
    return {**arguments, **kwargs}


def _typed(module: ModuleType, tool: Any, value: Any) -> Any:
    """Return a result as the library gives it to its agents: text, images and audio in the library's own classes."""
    convert = getattr(module, "handle_agent_output_types", None)
    return value if convert is None else convert(value, getattr(tool, "output_type", None))


def _types() -> dict[str, type]:
    errors = sys.modules.get("smolagents.utils")
    return answers.classes(
        *(getattr(errors, name, None) for name in dir(errors) if name.endswith("Error"))
    )
