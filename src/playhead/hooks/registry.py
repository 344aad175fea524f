"""The table of hooks: which module of which library is hooked by which of our modules. A new SDK is one module
and one row.

Our module is imported only when the library is, so a program pays only for the libraries that it uses.
"""

from __future__ import annotations

from playhead.hooks.guest import Patches, hook_module, tell
from playhead.host.importing import forget, when_imported
from playhead.host.later import loaded
from playhead.host.lean import NamedTuple
from playhead.recording import deck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.recording.deck import Deck


class Row(NamedTuple):
    """A library's module, our file for it, and the boundary that it crosses."""

    watched: str  # the library's module: the hook runs right after its import
    hook: str  # our module below playhead.hooks; its function is `hook`, or named after a colon
    boundary: str


ROWS: tuple[Row, ...] = (
    # processes
    Row("os", "process.os_functions", "process"),
    Row("pty", "process.pty_children", "process"),
    Row("subprocess", "process.popen", "process"),
    Row("asyncio.unix_events", "process.asyncio_children", "process"),
    Row("multiprocessing.process", "process.multiprocessing_children", "process"),
    Row(
        "multiprocessing.popen_forkserver",
        "process.multiprocessing_children:hook_forkserver",
        "process",
    ),
    Row("uvloop", "process.uvloop_children", "process"),
    # order
    Row("asyncio.base_events", "order.event_loops", "clock"),
    Row("asyncio.tasks", "order.task_sets", "clock"),
    Row("anyio._backends._asyncio", "order.task_sets:hook_anyio", "clock"),
    Row("trio", "order.trio_batches", "clock"),
    Row("trio", "order.trio_deadlines", "clock"),
    Row("trio", "order.trio_callbacks", "clock"),
    Row("asyncio.taskgroups", "order.task_sets:hook_groups", "clock"),
    Row("sys", "order.outputs", "clock"),
    Row("os", "order.outputs:hook_os", "clock"),
    Row("logging", "order.log_handlers", "clock"),
    Row("multiprocessing.queues", "order.process_queues", "clock"),
    Row("queue", "order.queues", "clock"),
    Row("langgraph._internal._queue", "order.queues:hook_stream", "clock"),
    Row("threading", "order.thread_waits", "clock"),
    Row("threading", "order.noted_locks", "clock"),
    Row("concurrent.futures._base", "order.future_waits", "clock"),
    Row("multiprocessing.pool", "order.worker_results:hook_pool", "clock"),
    Row("concurrent.futures.process", "order.worker_results:hook_executor", "clock"),
    Row("multiprocessing.connection", "order.pipe_waits", "clock"),
    Row("multiprocessing.synchronize", "order.pipe_waits:hook_events", "clock"),
    Row("time", "order.sleeps", "clock"),
    # http
    Row("httpx", "http.httpx_client", "http"),
    Row("httpx2", "http.httpx_client", "http"),
    Row("http.client", "http.http_client", "http"),
    Row("urllib3.connectionpool", "http.urllib3_pool", "http"),
    Row("aiohttp", "http.aiohttp_client", "http"),
    Row("websockets.asyncio.client", "websocket.websockets_client", "http"),
    Row("websockets.sync.client", "websocket.websockets_client", "http"),
    Row("websockets.trio.client", "websocket.websockets_client", "http"),
    Row("websockets.legacy.client", "websocket.websockets_client", "http"),
    Row("pycurl", "http.curl_handles:hook_pycurl", "http"),
    Row("curl_cffi.curl", "http.curl_handles:hook_curl_cffi", "http"),
    Row("curl_cffi.aio", "http.curl_handles:hook_curl_cffi_aio", "http"),
    # input
    Row("sys", "input.stdin_reads", "input"),
    Row("builtins", "input.stdin_reads:hook_builtins", "input"),
    Row("os", "input.stdin_reads:hook_os", "input"),
    Row("getpass", "input.passwords", "input"),
    Row("_signal", "input.signals:hook_handlers", "input"),
    Row("signal", "input.signals", "input"),
    Row("asyncio.base_events", "input.asyncio_stdin", "input"),
    Row("asyncio.base_events", "input.asyncio_servers", "input"),
    Row("asyncio.unix_events", "input.asyncio_servers:hook_unix", "input"),
    Row("socketserver", "input.threaded_servers", "input"),
    Row("socket", "input.threaded_servers:hook_accept", "input"),
    Row("socket", "input.shared_listeners", "input"),
    Row("granian.server.common", "input.granian_server", "input"),
    Row("ipykernel.kernelapp", "input.notebook_kernel", "input"),
    Row("uvloop", "input.asyncio_stdin:hook_uvloop", "input"),
    Row("uvloop", "input.asyncio_servers:hook_uvloop", "input"),
    # streams
    Row("socket", "stream.sockets", "stream"),
    Row("asyncio.selector_events", "stream.sockets:hook_selector_loop", "stream"),
    Row("asyncio.selector_events", "stream.loop_tls", "stream"),
    Row("ssl", "stream.tls", "stream"),
    Row("trio", "stream.trio_tls", "stream"),
    Row("socket", "stream.lookups", "stream"),
    Row("asyncio.base_events", "stream.lookups:hook_loop", "stream"),
    Row("pymysql.connections", "stream.mysql_attributes", "stream"),
    Row("aiomysql.connection", "stream.mysql_attributes:hook_aiomysql", "stream"),
    Row("pymongo.message", "stream.mongo_ids", "stream"),
    Row("celery.utils.nodenames", "stream.celery_names", "stream"),
    Row("kombu.common", "stream.celery_names:hook_kombu", "stream"),
    # gRPC
    Row("grpc._channel", "grpc.grpc_channel", "grpc"),
    Row("grpc.aio._channel", "grpc.grpc_aio_channel", "grpc"),
    # databases
    Row("psycopg", "sql.psycopg_client", "sql"),
    Row("psycopg2", "sql.psycopg2_client", "sql"),
    # tools
    Row("langchain_core.tools.base", "tools.langchain_tools", "tool"),
    Row("langchain_core.runnables.config", "tools.langchain_tools:hook_executor", "tool"),
    Row("agents.tool", "tools.openai_agents", "tool"),
    Row("pydantic_ai.toolsets.function", "tools.pydantic_ai_tools", "tool"),
    Row("smolagents.tools", "tools.smolagents_tools", "tool"),
    Row("crewai.tools.base_tool", "tools.crewai_tools", "tool"),
    Row("crewai.tools.structured_tool", "tools.crewai_tools", "tool"),
    Row("claude_agent_sdk", "tools.claude_agent_sdk", "tool"),
    # mcp
    Row("mcp.client.session", "mcp.mcp_client", "mcp"),
    Row("mcp.client.stdio", "mcp.mcp_transport", "mcp"),
    Row("mcp.client.sse", "mcp.mcp_transport", "mcp"),
    Row("mcp.client.streamable_http", "mcp.mcp_transport", "mcp"),
    # state
    Row("sqlite3", "state.sqlite_files", "state"),
    Row("sqlite3", "state.sqlite_order", "state"),
    # clock and entropy
    Row("time", "ambient.clock_reads:hook_time", "clock"),
    Row("datetime", "ambient.clock_reads:hook_datetime", "clock"),
    Row("os", "ambient.entropy_reads:hook_os", "entropy"),
    Row("ssl", "ambient.entropy_reads:hook_ssl", "entropy"),
    Row("random", "ambient.random_draws:hook_random", "entropy"),
    Row("tempfile", "ambient.tempfile_names", "entropy"),
    Row("_pytest.pathlib", "ambient.pytest_folders", "entropy"),
    Row("socket", "ambient.bound_ports", "entropy"),
    Row("os", "ambient.machine_reads:hook_os", "entropy"),
    Row("resource", "ambient.machine_reads:hook_resource", "entropy"),
    Row("socket", "ambient.machine_reads:hook_socket", "entropy"),
    Row("psutil", "ambient.machine_reads:hook_psutil", "entropy"),
    Row("uuid", "ambient.entropy_reads:hook_uuid", "entropy"),
    Row("warnings", "ambient.warning_filters", "tool"),
    Row("uuid_utils", "ambient.entropy_reads:hook_uuid_utils", "entropy"),
    Row("uuid_utils.compat", "ambient.entropy_reads:hook_uuid_utils", "entropy"),
    Row("fastuuid", "ambient.entropy_reads:hook_fastuuid", "entropy"),
    Row("numpy.random", "ambient.random_draws:hook_numpy", "entropy"),
    # The last row for uvloop, because it replaces the loop that the other rows hook.
    Row("uvloop", "order.event_loops:hook_uvloop", "clock"),
)

# Installed only in a replay: waits use the time of the replay, and no connection is opened before its request is known
# to be live.
REPLAY_ROWS: tuple[Row, ...] = (
    Row("http.client", "http.http_client:hook_connect", "http"),
    Row("urllib3.connectionpool", "http.urllib3_pool:hook_connect", "http"),
    Row("time", "ambient.waiting_threads:hook_time", "clock"),
    Row("threading", "ambient.waiting_threads:hook_threading", "clock"),
    Row("queue", "ambient.waiting_threads:hook_queue", "clock"),
    Row("concurrent.futures.thread", "ambient.pool_jobs", "clock"),
    Row("signal", "input.signals:hook_senders", "input"),
    Row("subprocess", "ambient.waiting_threads:hook_subprocess", "clock"),
    Row("selectors", "ambient.waiting_selectors:hook_selectors", "clock"),
    Row("select", "ambient.waiting_selectors:hook_select", "clock"),
    Row("select", "input.awaited_listeners", "input"),
    Row("trio", "ambient.waiting_selectors:hook_trio", "clock"),
)

_installed: list[tuple[Callable[[ModuleType], None], list[Patches]]] = []


def install(opened: Deck | None = None) -> None:
    """Watch for every library of ROWS, and in a replay for those of REPLAY_ROWS. Idempotent: if the hooks are
    installed already, the `opened` deck gets their report.
    """
    if _installed:
        if opened is not None:
            for patches in [one for _, those in _installed for one in list(those)]:
                tell(patches, opened)
        return
    for row in ROWS + REPLAY_ROWS if deck.is_replay() else ROWS:
        done: list[Patches] = []
        callback = _callback(row, done)
        _installed.append((callback, done))
        when_imported(row.watched, callback)


def uninstall() -> None:
    """Remove every hook, and restore each library."""
    while _installed:
        callback, done = _installed.pop()
        forget(callback)
        for patches in done:
            patches.undo()


def _callback(row: Row, done: list[Patches]) -> Callable[[ModuleType], None]:
    ours, _, function = row.hook.partition(":")

    def hook(module: ModuleType, patches: Patches) -> None:
        # Imported here, so that an error in our module becomes a hole on the tape and does not break the program's
        # import.
        getattr(loaded(f"playhead.hooks.{ours}"), function or "hook")(module, patches)

    def imported(module: ModuleType) -> None:
        done.append(hook_module(hook, module, boundary=row.boundary))

    return imported
