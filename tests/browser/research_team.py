"""A team of agents, recorded: two researchers side by side, an editor who fails at the end.

Run with the store as argument; prints the id of the run. Speaks to a scripted model over real HTTP.
"""

import base64
import json
import struct
import subprocess
import sys
import threading
import zlib

import httpx

import playhead
from playhead.testing import Reply, ScriptedLLM, ToolCall, Usage

CACHE = "The cache is never hit since release 4.2.0, and each miss is retried six times."
SLOWER = "Release 4.2.0 cannot be measured: the store of the metrics is busy."
REPORT = """## What we found

Latency rose by **38 %** after the release of *12 November*. Two causes stand out:

1. `retry_budget` was raised from 2 to 6
2. The cache key holds a timestamp, so nothing is ever found in it

| release | p50 | p95 |
|---|---|---|
| 4.1.0 | 210 ms | 640 ms |
| 4.2.0 | 290 ms | 1.9 s |

```python
key = f"{user}:{query}:{time.time()}"   # never the same twice
```

> Roll back, then fix the key.
"""


def plan(request):
    """What the model says depends on who asks, so that two may ask at once."""
    asked = request.prompt
    if "logs" in asked and request.turn == 1:
        return Reply(
            text="I will look at the logs.",
            tool_calls=[ToolCall(name="search_logs", arguments={"service": "search", "hours": 24})],
            usage=Usage(input=812, output=64, cache_write=1200),
            chunk_delay=0.01,
        )
    if "metrics" in asked and request.turn == 1:
        return Reply(
            text="Let me fetch the figures of both releases.",
            tool_calls=[ToolCall(name="fetch_metrics", arguments={"releases": ["4.1.0", "4.2.0"]})],
            usage=Usage(input=640, output=58, cache_write=1200),
            chunk_delay=0.01,
        )
    if "report" in asked:
        return Reply(
            text=REPORT, usage=Usage(input=4210, output=388, cache_read=1200), chunk_delay=0.004
        )
    return Reply(
        text=CACHE if any("logs say" in one.text for one in request.messages) else SLOWER,
        usage=Usage(input=1904, output=41, cache_read=1200),
        chunk_delay=0.01,
    )


def picture() -> str:
    """A small chart, as the PNG that a person pastes."""
    wide, high = 48, 24
    rows = b"".join(
        b"\0"
        + b"".join(b"\x3d\x5a\xfe" if y > high - x // 2 else b"\xf0\xf1\xf5" for x in range(wide))
        for y in range(high)
    )

    def part(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    raw = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows))
    return base64.b64encode(raw + part(b"IEND", b"")).decode()


@playhead.tool
def search_logs(service: str, hours: int) -> list[str]:
    done = subprocess.run(
        ["printf", "%s\\n", "WARN cache miss", "WARN retry 6/6"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


class Team:
    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=30)

    def fetch_metrics(self, releases: list[str]) -> dict:
        found = {}
        for release in releases:
            found[release] = self.client.get(f"/metrics/{release}").json()
        return found

    def ask(self, messages: list) -> dict:
        body = {
            "model": "claude-sonnet-5-5",
            "max_tokens": 800,
            "system": "You find out why a service became slow. Say what you know and what you guess.",
            "messages": messages,
            "tools": [
                {"name": name, "description": told, "input_schema": {"type": "object"}}
                for name, told in (
                    ("search_logs", "Lines of the logs of a service."),
                    ("fetch_metrics", "Latencies of releases."),
                )
            ],
            "stream": True,
        }
        blocks: dict[int, dict] = {}
        with self.client.stream("POST", "/v1/messages", json=body) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self.grow(blocks, json.loads(line[6:]))
        return [blocks[index] for index in sorted(blocks)]

    def grow(self, blocks: dict, event: dict) -> None:
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            if "text" in delta:
                block["text"] += delta["text"]
            block["json"] += delta.get("partial_json", "")
        elif event["type"] == "content_block_stop":
            block = blocks[event["index"]]
            raw = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(raw or "{}")

    def research(self, question: str, tools: dict) -> None:
        messages = [{"role": "user", "content": question}]
        said = self.ask(messages)
        messages.append({"role": "assistant", "content": said})
        results = []
        for block in said:
            if block["type"] == "tool_use":
                value = tools[block["name"]](**block["input"])
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block["id"],
                        "content": json.dumps(value),
                    }
                )
        messages.append({"role": "user", "content": results})
        self.ask(messages)


def main() -> None:
    with ScriptedLLM(plan, routes={"/metrics/4.1.0": figures, "/metrics/4.2.0": broken}) as llm:
        team = Team(llm.url)
        tools = {
            "search_logs": search_logs,
            "fetch_metrics": playhead.tool(name="fetch_metrics")(team.fetch_metrics),
        }
        try:
            with playhead.record(name="research-team", store=sys.argv[1], intercept=True) as run:
                print(run.id)
                work(run, team, tools)
        except KeyError:
            return


def work(run, team: Team, tools: dict) -> None:
    with run.turn("research", purpose="find out why search became slow") as turn:
        questions = {"logs": "What do the logs say?", "metrics": "What do the metrics say?"}
        workers = [
            threading.Thread(target=team.research, args=(text, tools), name=name)
            for name, text in questions.items()
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        turn.seam("evidence gathered", {"sources": 2})
    with run.turn("write", purpose="write the report and send it") as turn:
        image = {"type": "base64", "media_type": "image/png", "data": picture()}
        said = team.ask(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Write the report. The chart is below."},
                        {"type": "image", "source": image},
                    ],
                }
            ]
        )
        turn.seam("report written", {"characters": len(said[0]["text"])})
        run.emit("mail:queued", {"to": "team@example.org", "subject": "Search latency"})
        address = {"team": "search"}["mail"]
        print(address)


async def figures(exchange) -> None:
    await exchange.answer_json(200, {"p50": 210, "p95": 640})


async def broken(exchange) -> None:
    await exchange.answer_json(502, {"error": "metrics store is busy"})


if __name__ == "__main__":
    main()
