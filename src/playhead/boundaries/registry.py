"""Which module of which library is hooked by which of ours. A new SDK is one file and one row.

Our file is imported only when the library is: a program pays for what it uses.
"""

from __future__ import annotations

from playhead import deck
from playhead.boundaries.guest import Patches, hook_module
from playhead.importing import forget, when_imported
from playhead.later import loaded
from playhead.lean import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class Row(NamedTuple):
    """A library's module, our file for it, and the boundary that it crosses."""

    watched: str  # the library's module: the hook runs right after it was imported
    hook: (
        str  # our module below playhead.boundaries; its function is `hook`, or named after a colon
    )
    boundary: str


ROWS: tuple[Row, ...] = (
    # processes
    Row("os", "process_os", "process"),
    Row("pty", "process_pty", "process"),
    Row("subprocess", "process_popen", "process"),
    Row("asyncio.unix_events", "process_asyncio", "process"),
    Row("multiprocessing.process", "process_multiprocessing", "process"),
    Row("multiprocessing.popen_forkserver", "process_multiprocessing:hook_forkserver", "process"),
    Row("uvloop", "process_uvloop", "process"),
    # http
    Row("httpx", "httpx_client", "http"),
    Row("httpx2", "httpx_client", "http"),
    Row("http.client", "http_client", "http"),
    Row("urllib3.connectionpool", "urllib3_pool", "http"),
    Row("aiohttp", "aiohttp_client", "http"),
    Row("websockets.asyncio.client", "websockets_client", "http"),
    Row("websockets.sync.client", "websockets_client", "http"),
    Row("websockets.trio.client", "websockets_client", "http"),
    Row("websockets.legacy.client", "websockets_client", "http"),
    # tools
    Row("langchain_core.tools.base", "langchain_tools", "tool"),
    Row("langchain_core.runnables.config", "langchain_tools:hook_executor", "tool"),
    Row("agents.tool", "openai_agents", "tool"),
    Row("pydantic_ai.toolsets.function", "pydantic_ai", "tool"),
    Row("smolagents.tools", "smolagents", "tool"),
    Row("crewai.tools.base_tool", "crewai", "tool"),
    Row("crewai.tools.structured_tool", "crewai", "tool"),
    Row("claude_agent_sdk", "claude_agent_sdk", "tool"),
    # mcp
    Row("mcp.client.session", "mcp_client", "mcp"),
    Row("mcp.client.stdio", "mcp_transport", "mcp"),
    Row("mcp.client.sse", "mcp_transport", "mcp"),
    Row("mcp.client.streamable_http", "mcp_transport", "mcp"),
    # state
    Row("sqlite3", "sqlite_files", "state"),
    # clock and entropy
    Row("time", "ambient_clock:hook_time", "clock"),
    Row("datetime", "ambient_clock:hook_datetime", "clock"),
    Row("os", "ambient_entropy:hook_os", "entropy"),
    Row("ssl", "ambient_entropy:hook_ssl", "entropy"),
    Row("random", "ambient_random:hook_random", "entropy"),
    Row("tempfile", "ambient_tempfile", "entropy"),
    Row("uuid", "ambient_entropy:hook_uuid", "entropy"),
    Row("uuid_utils", "ambient_entropy:hook_uuid_utils", "entropy"),
    Row("uuid_utils.compat", "ambient_entropy:hook_uuid_utils", "entropy"),
    Row("numpy.random", "ambient_random:hook_numpy", "entropy"),
)

# Where waiting is given the time of the tape. Recording never touches it.
REPLAY_ROWS: tuple[Row, ...] = (
    Row("time", "waiting_threads:hook_time", "clock"),
    Row("threading", "waiting_threads:hook_threading", "clock"),
    Row("queue", "waiting_threads:hook_queue", "clock"),
    Row("subprocess", "waiting_threads:hook_subprocess", "clock"),
    Row("selectors", "waiting_selectors:hook_selectors", "clock"),
    Row("select", "waiting_selectors:hook_select", "clock"),
    Row("trio", "waiting_selectors:hook_trio", "clock"),
    Row("uvloop", "waiting_selectors:hook_uvloop", "clock"),
)

_installed: list[tuple[Callable[[ModuleType], None], list[Patches]]] = []


def install() -> None:
    """Watch for every library of ROWS, and in a replay for those of REPLAY_ROWS. Idempotent."""
    if _installed:
        return
    open_deck = deck.active()
    is_replay = open_deck is not None and open_deck.mode is not None
    for row in ROWS + REPLAY_ROWS if is_replay else ROWS:
        done: list[Patches] = []
        callback = _callback(row, done)
        _installed.append((callback, done))
        when_imported(row.watched, callback)


def uninstall() -> None:
    """Take every hook out again: each library is as it was."""
    while _installed:
        callback, done = _installed.pop()
        forget(callback)
        for patches in done:
            patches.undo()


def _callback(row: Row, done: list[Patches]) -> Callable[[ModuleType], None]:
    ours, _, function = row.hook.partition(":")

    def hook(module: ModuleType, patches: Patches) -> None:
        # Imported inside, so that a fault of ours is a hole on the tape, not a failed import there.
        getattr(loaded(f"playhead.boundaries.{ours}"), function or "hook")(module, patches)

    def imported(module: ModuleType) -> None:
        done.append(hook_module(hook, module, boundary=row.boundary))

    return imported
