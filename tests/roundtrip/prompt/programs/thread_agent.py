"""A LangGraph agent whose threads are in SQLite checkpointers: argv is the thread, the question, the databases."""

import json
import operator
import os
import sqlite3
import sys
import urllib.request
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

import playhead

HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
TOOL = {
    "name": "lookup",
    "description": "Look up an order.",
    "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}},
}


class State(TypedDict):
    messages: Annotated[list, operator.add]


@playhead.tool(effect="read")
def lookup(order: str) -> str:
    return f"{order} has shipped"


def model(state: State) -> State:
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "Be polite.",
        "tools": [TOOL],
        "messages": state["messages"],
    }
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(asked).encode(), HEADERS)
    with urllib.request.urlopen(request) as answer:
        content = json.load(answer)["content"]
    return {"messages": [{"role": "assistant", "content": content}]}


def tools(state: State) -> State:
    results = [
        {"type": "tool_result", "tool_use_id": part["id"], "content": lookup(**part["input"])}
        for part in state["messages"][-1]["content"]
        if part["type"] == "tool_use"
    ]
    return {"messages": [{"role": "user", "content": results}]}


def after(state: State) -> str:
    parts = state["messages"][-1]["content"]
    return "tools" if any(part["type"] == "tool_use" for part in parts) else END


graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", after)
graph.add_edge("tools", "model")

thread, question, *databases = sys.argv[1:]
for database in databases:
    with sqlite3.connect(database, check_same_thread=False) as connection:
        agent = graph.compile(checkpointer=SqliteSaver(connection))
        given = {"messages": [{"role": "user", "content": question}]}
        state = agent.invoke(given, {"configurable": {"thread_id": thread}})
    print(len(state["messages"]), state["messages"][-1]["content"][0]["text"])
    connection.close()
