"""The loopback server of the order suite: delays with jitter, streams with gaps, answers of models."""

import asyncio
import json
import random

from playhead.testing import Exchange, HttpSite

_SSE = [("content-type", "text/event-stream")]
_JITTER_S = 0.004


async def _pause(ms: float) -> None:
    await asyncio.sleep(ms / 1000 + random.uniform(0, _JITTER_S))


async def wait(exchange: Exchange) -> None:
    """`?n=3&ms=20&status=200`: answers after so many milliseconds, and up to four more."""
    query = exchange.request.query
    await _pause(float(query.get("ms", 0)))
    await exchange.answer_json(int(query.get("status", 200)), {"n": query.get("n")})


async def flaky(exchange: Exchange) -> None:
    """Fails at random for three attempts."""
    query = exchange.request.query
    await _pause(float(query.get("ms", 0)))
    fails = int(query["attempt"]) < 3 and random.random() < 0.5
    await exchange.answer_json(503 if fails else 200, {"n": query.get("n")})


async def sse(exchange: Exchange) -> None:
    """`?pieces=6&ms=5&cut=1`: a stream of events; `cut` ends it in the middle."""
    query = exchange.request.query
    await exchange.open_stream(200, _SSE)
    for number in range(int(query.get("pieces", 5))):
        await exchange.send(b"data: piece %d\n\n" % number)
        await _pause(float(query.get("ms", 0)))
    if query.get("cut") == "1":
        await exchange.end("close")
    else:
        await exchange.finish()


def _tool_calls(question: str) -> list[dict[str, object]]:
    """Four tools at once: two calls of `search`, two of `look`."""
    first = int(question.rsplit(maxsplit=1)[-1]) * 10
    return [
        {
            "id": f"call-{first + n}",
            "index": n,
            "type": "function",
            "function": {
                "name": "search" if n % 2 else "look",
                "arguments": f'{{"n": {first + n}}}',
            },
        }
        for n in range(4)
    ]


async def chat(exchange: Exchange) -> None:
    """OpenAI's chat completions: repeats the question, in one piece or streamed. If the request has tools that were not
    called yet, the answer asks for four of them.
    """
    asked = exchange.request.json
    question = asked["messages"][-1]["content"]
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-test"}
    if asked.get("stream"):
        await exchange.open_stream(200, _SSE)
        for word in (*f"answer to {question}".split(), None):
            delta = {"role": "assistant", "content": word} if word else {}
            choice = {"index": 0, "finish_reason": None if word else "stop", "delta": delta}
            told = {**answer, "object": "chat.completion.chunk", "choices": [choice]}
            await exchange.send(f"data: {json.dumps(told)}\n\n".encode())
            await _pause(random.uniform(0, 6))
        await exchange.send(b"data: [DONE]\n\n")
        await exchange.finish()
        return
    await _pause(random.uniform(0, 40))
    message = {"role": "assistant", "content": f"answer to {question}"}
    reason = "stop"
    if asked.get("tools") and asked["messages"][-1]["role"] == "user":
        message = {"role": "assistant", "content": None, "tool_calls": _tool_calls(question)}
        reason = "tool_calls"
    choice = {"index": 0, "finish_reason": reason, "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    await exchange.answer_json(200, {**answer, "choices": [choice], "usage": usage})


async def messages(exchange: Exchange) -> None:
    """Anthropic's messages, streamed: five deltas."""
    await exchange.open_stream(200, _SSE)

    async def send(kind: str, **members: object) -> None:
        told = json.dumps({"type": kind, **members})
        await exchange.send(f"event: {kind}\ndata: {told}\n\n".encode())

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-test"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    await send("message_start", message=message)
    await send("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number in range(5):
        await _pause(3)
        await send(
            "content_block_delta", index=0, delta={"type": "text_delta", "text": str(number)}
        )
    await send("content_block_stop", index=0)
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    await send("message_delta", delta=stop, usage={"output_tokens": 5})
    await send("message_stop")
    await exchange.finish()


ROUTES = {
    "/wait": wait,
    "/flaky": flaky,
    "/sse": sse,
    "/v1/chat/completions": chat,
    "/v1/messages": messages,
}


def serve() -> HttpSite:
    """`with serve() as site:` answers on `site.url`."""
    return HttpSite(ROUTES)
