"""Two facts about a tool call: which LLM response requested it, and what it printed.

Requests: the LLM responses of this process are kept raw and decoded only when a tool is called, so a program
without tools pays nothing.

Output: a replay does not run a tool, so it must print the tool's output itself. While recording,
`hooks/order/outputs` gives printed text to the outermost tool call (`lanes.printing`), as pieces of the streams
`stdout` and `stderr`. In a replay the deck writes each piece when the replay reaches it, between the pieces of
other tools that ran at the same time.
"""

from __future__ import annotations

from playhead.encoding.jsonbytes import canonical
from playhead.encoding.values import freeze
from playhead.host.later import Later
from playhead.host.lean import RLock, deque
from playhead.recording import lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from playhead import llm as wire
    from playhead.recording.calls import Piece
    from playhead.recording.crossing import Crossing
else:
    wire = Later("playhead.llm")


_MOST_RESPONSES = 32
_QUOTES = {ord(one): None for one in "'\"\\"}
# A shorter text may be in a command by chance.
_SHORTEST_WRAPPED = 6
LARGEST_HEARD = 4 * 1024 * 1024


class ToolRequests:
    """Tool calls that a model has requested and that have not been performed yet."""

    def __init__(self) -> None:
        self.make_lock()
        self._heard: deque[tuple[str, str, int, Mapping[str, str], bytes]] = deque(
            maxlen=_MOST_RESPONSES
        )
        self._open: list[tuple[str, str, Any]] = []

    @property
    def anything(self) -> bool:
        """Return whether a model has requested anything: a program without a model pays nothing."""
        return bool(self._heard or self._open)

    def make_lock(self) -> None:
        # Re-entrant: decoding creates garbage, and a stream that is collected meanwhile reports its end here.
        self._lock = RLock()

    def hear(
        self, call: str, api: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Keep a complete response. Cheap: it is decoded later."""
        if status < 400 and len(body) <= LARGEST_HEARD:
            self._heard.append((call, api, status, headers, body))

    def who_asked(self, name: str, arguments: Any) -> str | None:
        """Return the LLM call whose response requested `name(arguments)`: the newest one with equal arguments, else the
        oldest open one with that name (a framework may have added defaults).
        """
        with self._lock:
            self._decode()
            named = [one for one in self._open if one[1] == name]
            if not named:
                return None
            wanted = _canonical(arguments)
            found = next((one for one in reversed(named) if _canonical(one[2]) == wanted), named[0])
            self._open.remove(found)
            return str(found[0])

    def who_wrote(self, text: str) -> str | None:
        """Return the LLM call whose response holds `text` in a tool call's arguments (a shell command run by the agent
        itself, without a tool that we know).
        """
        if len(text) < 3:
            return None
        with self._lock:
            self._decode()
            for name, _, arguments in reversed(self._open):
                if any(text in leaf for leaf in _texts(arguments)):
                    return str(name)
            # An agent may wrap the command in words of its own, and quote it.
            bare = text.translate(_QUOTES)
            for name, _, arguments in reversed(self._open):
                leaves = (leaf.translate(_QUOTES).strip() for leaf in _texts(arguments))
                if any(len(leaf) >= _SHORTEST_WRAPPED and leaf in bare for leaf in leaves):
                    return str(name)
        return None

    def _decode(self) -> None:
        while self._heard:
            call, api, status, headers, body = self._heard.popleft()
            for asked in wire.tool_calls_of(api, status, headers, body):
                self._open.append((call, str(asked.name), asked.arguments))
        del self._open[:-256]


def _canonical(arguments: Any) -> bytes:
    return canonical(freeze(arguments))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return []


# The third stream has warnings and changes of their filters: see `hooks/ambient/warning_filters`.
WARNINGS = "warnings"
STREAMS = frozenset({"stdout", "stderr", WARNINGS})

# The unhooked write function of each stream: set by the hooks on the streams of this process and on `warnings`.
writers: dict[str, Callable[[str], object]] = {}


def note(stream: str, text: str) -> bool:
    """Note printed text. Return whether it belongs to a tool call, which has its place on the tape."""
    crossing = lanes.printing.get()
    if crossing is None or crossing.taped is not None:
        return False
    crossing.chunk(text.encode("utf-8", "backslashreplace"), stream)
    return True


def write(crossing: Crossing, piece: Piece) -> None:
    """Print a piece of a tool's output again, and write it to the tape of the replay."""
    crossing.chunk(piece.data, piece.stream)
    writer = writers.get(piece.stream)
    if writer is not None:
        writer(piece.data.decode("utf-8", "replace"))


def serve(crossing: Crossing) -> None:
    """Print the tool's output, each piece when the replay reaches it."""
    for point, piece in _pieces(crossing):
        crossing.reach(point)
        write(crossing, piece)


async def serve_async(crossing: Crossing) -> None:
    for point, piece in _pieces(crossing):
        await crossing.reach_async(point)
        write(crossing, piece)


def _pieces(crossing: Crossing) -> Iterator[tuple[int, Piece]]:
    # The hooks of processes print the output of a process themselves.
    if crossing.taped is not None and crossing.call.boundary != "process":
        for point, piece in enumerate(crossing.taped.pieces):
            if piece.stream in STREAMS:
                yield point, piece
