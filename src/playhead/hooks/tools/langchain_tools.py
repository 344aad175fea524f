"""Record the tools of LangChain and LangGraph: `_run` and `_arun` of the tool's class.

The hooks are below `run`, so that LangChain's callbacks, validation and error handling also run in a replay. The
recorded arguments are those that LangChain itself shows to its tracers. Knows `BaseTool`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from playhead import events
from playhead.encoding.values import safe_str, type_name
from playhead.hooks import answers
from playhead.hooks.answers import Named
from playhead.hooks.guest import Patches, need, report
from playhead.hooks.tools.tool_calls import Tool, effect_hinted, perform, perform_async
from playhead.recording import deck

# The tool and the input of the `run` that the code running now is part of.
_asked: ContextVar[tuple[Any, Any] | None] = ContextVar("playhead_langchain_asked", default=None)

_NOT_ARGUMENTS = ("run_manager", "callbacks", "config")


def hook(module: ModuleType, patches: Patches) -> None:
    base = module.BaseTool
    need(base, "_run", "_arun", "run", "arun")
    workers = _Workers(base, patches)

    def wrap_run(run: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
            if deck.active() is None:
                return run(self, tool_input, *args, **kwargs)
            workers.hook(type(self))
            token = _asked.set((self, tool_input))
            try:
                return run(self, tool_input, *args, **kwargs)
            finally:
                _asked.reset(token)

        return asked

    def wrap_arun(arun: Callable[..., Any]) -> Callable[..., Any]:
        async def asked(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
            if deck.active() is None:
                return await arun(self, tool_input, *args, **kwargs)
            workers.hook(type(self))
            token = _asked.set((self, tool_input))
            try:
                return await arun(self, tool_input, *args, **kwargs)
            finally:
                _asked.reset(token)

        return asked

    patches.replace(base, "run", wrap_run)
    patches.replace(base, "arun", wrap_arun)


def hook_executor(module: ModuleType, patches: Patches) -> None:
    """Give every job of LangChain's own `map` a lane.

    It runs jobs in contexts that it copied beforehand, so no lane can be set in them. The standard library's `map`
    calls `submit`, which copies a context for each job. `batch` and LangGraph's tool node use `map`.
    """
    executor = module.ContextThreadPoolExecutor
    need(executor, "map", "submit")

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def mapped(self: Any, fn: Callable[..., Any], *iterables: Any, **kwargs: Any) -> Any:
            if deck.active() is None:
                return original(self, fn, *iterables, **kwargs)
            # The standard library's `map`, which calls `submit` once per job.
            return super(executor, self).map(fn, *iterables, **kwargs)

        return mapped

    patches.replace(executor, "map", wrap)


class _Workers:
    """Hooks `_run` and `_arun` where a class or its nearest ancestor defines them, when a tool of
    that class is first used: classes are made at any time, and most are never run.
    """

    def __init__(self, base: type, patches: Patches) -> None:
        self._base = base
        self._patches = patches
        self._lock = threading.Lock()
        self._done: set[tuple[type, str]] = set()
        self._seen: set[type] = set()

    def hook(self, kind: type) -> None:
        if kind in self._seen:
            return
        try:
            self._hook(kind)
        except Exception as error:  # noqa: BLE001  a class that does not let itself be changed
            why = f"{type(error).__name__}: {safe_str(error)}"
            report(events.HOLE, {"boundary": "tool", "what": type_name(kind), "why": why})
        self._seen.add(kind)

    def _hook(self, kind: type) -> None:
        with self._lock:
            for name, wrap in (("_run", _wrap_work), ("_arun", _wrap_async_work)):
                owner = next((one for one in kind.__mro__ if name in vars(one)), None)
                # BaseTool's own are not hooked: LangChain asks whether `_arun` is still the
                # inherited one, which only hands the work to `_run`.
                if owner is None or owner is self._base or (owner, name) in self._done:
                    continue
                self._patches.replace(owner, name, wrap)
                self._done.add((owner, name))


def _wrap_work(work: Callable[..., Any]) -> Callable[..., Any]:
    def worked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if deck.active() is None:
            return work(self, *args, **kwargs)
        return perform(lambda: _tool(self, args, kwargs), lambda: work(self, *args, **kwargs))

    return worked


def _wrap_async_work(work: Callable[..., Any]) -> Callable[..., Any]:
    async def worked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if deck.active() is None:
            return await work(self, *args, **kwargs)
        return await perform_async(
            lambda: _tool(self, args, kwargs), lambda: work(self, *args, **kwargs)
        )

    return worked


def _tool(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tool:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return Tool(
        name=str(tool.name),
        arguments=_arguments(tool, args, kwargs),
        library="langchain",
        function=function or type(tool)._run,
        effect=effect_hinted(getattr(tool, "metadata", None) or {}),
        types=_types,
    )


def _arguments(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    asked = _asked.get()
    given = asked[1] if asked is not None and asked[0] is tool else kwargs
    if not isinstance(given, dict):
        return {"tool_input": given}
    # LangChain's private filter for its tracers removes state, stores and call ids, which differ in each run.
    # If it goes away, the arguments are recorded unfiltered and may no longer match exactly.
    visible = getattr(tool, "_filter_injected_args", None)
    if visible is not None:
        given = visible(given)
    given = {name: item for name, item in given.items() if name not in _NOT_ARGUMENTS}
    return {**given, "args": list(args)} if args and given is kwargs else given


def _types() -> Named:
    """Return the types that a tool may return to LangChain besides text: messages, documents, LangGraph's commands."""
    messages = sys.modules.get("langchain_core.messages")
    documents = sys.modules.get("langchain_core.documents")
    graph = sys.modules.get("langgraph.types")
    base = sys.modules.get("langchain_core.tools.base")
    return answers.classes(
        *(
            getattr(messages, f"{name}Message", None)
            for name in ("Tool", "Human", "AI", "System", "Remove")
        ),
        getattr(documents, "Document", None),
        *(getattr(graph, name, None) for name in ("Command", "Send")),
        *(getattr(base, name, None) for name in ("ToolException", "SchemaAnnotationError")),
    )
