"""What a tool prints is a part of its answer. Knows the two streams and where a replay writes to.

A replay does not run a tool, so without this its output would be missing. While recording, `hooks/order/outputs`
gives what is printed to the outermost tool call (`lanes.printing`), as pieces of the streams `stdout` and
`stderr`. In a replay the deck writes each piece again when the replay comes to it, between the pieces of other
tools that ran at the same time.
"""

from __future__ import annotations

from playhead.recording import lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playhead.recording.calls import Piece
    from playhead.recording.crossing import Crossing

STREAMS = frozenset({"stdout", "stderr"})

# How each stream is written to, without hooks: set by the hook on the streams of this process.
writers: dict[str, Callable[[str], object]] = {}


def note(stream: str, text: str) -> bool:
    """Something was printed. Whether it belongs to a tool call, which has its place on the tape."""
    crossing = lanes.printing.get()
    if crossing is None or crossing.taped is not None:
        return False
    crossing.chunk(text.encode("utf-8", "backslashreplace"), stream)
    return True


def write(crossing: Crossing, piece: Piece) -> None:
    """Print a piece of a tool's output again, and put it on the tape of the replay."""
    crossing.chunk(piece.data, piece.stream)
    writer = writers.get(piece.stream)
    if writer is not None:
        writer(piece.data.decode("utf-8", "replace"))


def serve(crossing: Crossing) -> None:
    """Print what the tool printed, each piece when the replay has come to it."""
    for point, piece in _pieces(crossing):
        crossing.reach(point)
        write(crossing, piece)


async def serve_async(crossing: Crossing) -> None:
    for point, piece in _pieces(crossing):
        await crossing.reach_async(point)
        write(crossing, piece)


def _pieces(crossing: Crossing) -> Iterator[tuple[int, Piece]]:
    if crossing.taped is not None:
        for point, piece in enumerate(crossing.taped.pieces):
            if piece.stream in STREAMS:
                yield point, piece
