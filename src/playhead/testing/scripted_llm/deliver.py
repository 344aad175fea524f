"""Send the frames of an answer with the script's timing and faults."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from playhead.llm.scripting.llm_script import Ending, Reply


class Sink(Protocol):
    """The destination of frames: an HTTP answer or a WebSocket."""

    async def send(self, data: bytes) -> None: ...

    async def send_half(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def end(self, how: Ending) -> None: ...


async def deliver(frames: Iterable[bytes], reply: Reply, sink: Sink) -> None:
    """Send each frame; a cut after the last one only omits the end of the stream."""
    cut = reply.cut
    for index, frame in enumerate(frames):
        if cut is not None and index == cut.after:
            if cut.mid_event:
                await sink.send_half(frame)
            await sink.end(cut.how)
            return
        if index and reply.chunk_delay:
            await asyncio.sleep(reply.chunk_delay)
        await sink.send(frame)
    if cut is not None:
        await sink.end(cut.how)
        return
    await sink.finish()
