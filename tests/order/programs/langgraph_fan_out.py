"""LangGraph: async nodes that `Send` starts in parallel, streamed as they update."""

import asyncio
import operator
import sys
from typing import Annotated, TypedDict

import httpx
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

URL = sys.argv[1]


class State(TypedDict):
    subjects: list[int]
    found: Annotated[list[str], operator.add]


async def plan(state):
    return {"subjects": list(range(6))}


def spread(state):
    return [Send("search" if n % 2 else "look", {"n": n}) for n in state["subjects"]]


async def search(state):
    n = state["n"]
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("searched", n)
    return {"found": [answer.json()["n"]]}


def look(state):
    n = state["n"]
    answer = httpx.get(f"{URL}/wait", params={"n": n, "ms": n * 7 % 30})
    print("looked", n)
    return {"found": [answer.json()["n"]]}


def finish(state):
    return {"found": ["end"]}


graph = StateGraph(State)
for node in (plan, search, look, finish):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "plan")
graph.add_conditional_edges("plan", spread, ["search", "look"])
graph.add_edge("search", "finish")
graph.add_edge("look", "finish")
graph.add_edge("finish", END)


async def main():
    app = graph.compile()
    async for mode, update in app.astream({"found": []}, stream_mode=["updates", "values"]):
        print(mode, update)
    print(await asyncio.gather(*(app.ainvoke({"found": []}) for _ in range(2))))


asyncio.run(main())
