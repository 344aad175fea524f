"""LangChain's tools and LangGraph's tool node: on the tape once, and served below the callbacks."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import (
    BaseTool,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command

import playhead.hooks.tools.decorator as playhead_tools
from playhead.hooks import registry


@pytest.fixture(autouse=True)
def _hooked(hooks):
    hooks("tool")


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
async def fetch(url: str) -> dict:
    """Fetch a page."""
    await asyncio.sleep(0)
    return {"url": url}


class Weather(BaseTool):
    name: str = "weather"
    description: str = "How it is outside."

    def _run(self, city: str, run_manager: Any = None) -> str:
        if city == "Atlantis":
            raise ToolException("under water")
        return f"rain in {city}"


class WeatherAndTime(Weather):
    name: str = "weather_and_time"

    def _run(self, city: str, run_manager: Any = None) -> str:
        return super()._run(city) + " at noon"


def call_of(name: str, **arguments: Any) -> dict:
    return {"name": name, "args": arguments, "id": "call_1", "type": "tool_call"}


def test_a_sync_tool_is_recorded_with_the_arguments_that_the_model_gave(taping):
    assert add.invoke({"a": 1, "b": 2}) == 3
    assert add.invoke(call_of("add", a=4)).content == "5"
    assert taping.shown() == [("add", {"a": 1, "b": 2}, 3), ("add", {"a": 4}, 5)]
    assert taping.calls()[0].data["library"] == "langchain"


def test_an_async_tool_is_recorded_once(taping):
    assert asyncio.run(fetch.ainvoke({"url": "u"})) == {"url": "u"}
    assert taping.shown() == [("fetch", {"url": "u"}, {"url": "u"})]


def test_a_sync_tool_invoked_by_async_code_is_recorded_once(taping):
    assert asyncio.run(add.ainvoke({"a": 1})) == 2
    assert asyncio.run(Weather().ainvoke({"city": "Rome"})) == "rain in Rome"
    assert taping.shown() == [
        ("add", {"a": 1}, 2),
        ("weather", {"city": "Rome"}, "rain in Rome"),
    ]


def test_classes_of_one_s_own_are_recorded_and_what_they_inherit_is_not_a_second_call(taping):
    Weather().invoke({"city": "Rome"})
    WeatherAndTime().invoke({"city": "Bonn"})
    assert taping.shown() == [
        ("weather", {"city": "Rome"}, "rain in Rome"),
        ("weather_and_time", {"city": "Bonn"}, "rain in Bonn at noon"),
    ]


def test_a_tool_of_one_text_is_recorded_with_it(taping):
    shout = Tool(name="shout", func=str.upper, description="louder")
    assert shout.invoke("hey") == "HEY"
    assert taping.shown() == [("shout", {"tool_input": "hey"}, "HEY")]


def test_a_tool_s_exception_is_its_outcome_and_langchain_s_to_handle(taping):
    with pytest.raises(ToolException):
        Weather().invoke({"city": "Atlantis"})
    handled = Weather(handle_tool_error=True)
    assert handled.invoke(call_of("weather", city="Atlantis")).status == "error"
    outcome = "langchain_core.tools.base:ToolException"
    assert [row[2] for row in taping.shown()] == [outcome, outcome]


def test_what_langgraph_injects_is_not_an_argument(taping):
    @tool
    def remember(
        fact: str,
        state: Annotated[dict, InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command:
        """Keep a fact."""
        done = ToolMessage(f"{fact} beside {len(state['messages'])}", tool_call_id=tool_call_id)
        return Command(update={"messages": [done]})

    graph = _graph([remember])
    out = graph.invoke({"messages": [_asking(call_of("remember", fact="sky is blue"))]})
    assert out["messages"][-1].content == "sky is blue beside 1"
    assert taping.call("remember").data["request"] == {"arguments": {"fact": "sky is blue"}}


def test_a_command_comes_back_from_the_tape_with_its_messages(taping, replaying):
    @tool
    def remember(fact: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Keep a fact."""
        return Command(update={"messages": [ToolMessage(fact, tool_call_id=tool_call_id)]})

    graph = _graph([remember])
    asking = {"messages": [_asking(call_of("remember", fact="sky"))]}
    live = graph.invoke(asking)
    with replaying(taping):
        served = graph.invoke(asking)
    assert [one.content for one in served["messages"]] == [one.content for one in live["messages"]]


def test_parallel_calls_of_a_tool_node_are_each_on_the_tape(taping):
    calls = [call_of("add", a=n) | {"id": f"c{n}"} for n in range(3)]
    _graph([add]).invoke({"messages": [_asking(*calls)]})
    assert sorted(row[1]["a"] for row in taping.shown()) == [0, 1, 2]
    assert len({call.lane for call in taping.calls()}) == 3


def test_a_served_tool_does_not_run_and_its_callbacks_do(taping, replaying):
    ran, heard = [], []

    @tool(response_format="content_and_artifact")
    def draw(what: str) -> tuple[str, dict]:
        """Draw."""
        ran.append(what)
        return f"a {what}", {"pixels": [1, 2]}

    class Ears(BaseCallbackHandler):
        def on_tool_end(self, output: Any, **_: Any) -> None:
            heard.append(output.artifact)

    config = {"callbacks": [Ears()]}
    live = draw.invoke(call_of("draw", what="cat"), config)
    with replaying(taping):
        served = draw.invoke(call_of("draw", what="cat"), config)
    assert served == live
    assert heard == [{"pixels": [1, 2]}] * 2
    assert ran == ["cat"]


def test_an_async_tool_and_its_exception_are_served(taping, replaying):
    @tool
    async def fragile(n: int) -> str:
        """Break."""
        raise ToolException(f"broke {n}")

    def ask() -> str:
        with pytest.raises(ToolException) as caught:
            asyncio.run(fragile.ainvoke({"n": 1}))
        return str(caught.value)

    live = ask()
    with replaying(taping) as again:
        assert ask() == live
        assert again.shown() == taping.shown()


def test_a_function_that_is_our_tool_and_langchain_s_is_recorded_once(taping):
    @playhead_tools.tool(effect="read")
    def lookup(key: str) -> str:
        """Look."""
        return key

    assert tool(lookup).invoke({"key": "k"}) == "k"
    assert taping.shown() == [("lookup", {"key": "k"}, "k")]
    assert taping.call("lookup").data["effect"] == "read"


def test_hints_of_an_mcp_adapter_are_the_effect(taping):
    hinted = StructuredTool.from_function(
        lambda: "gone", name="drop", description="Drop.", metadata={"destructiveHint": True}
    )
    hinted.invoke({})
    assert taping.call("drop").data["effect"] == "irreversible"


def test_uninstall_leaves_every_class_as_it_was(taping, hooks):
    run, work = BaseTool.run, vars(Weather)["_run"]
    Weather().invoke({"city": "Rome"})
    assert vars(Weather)["_run"] is not work
    registry.uninstall()
    assert BaseTool.run is run.__wrapped__
    assert vars(Weather)["_run"] is work
    assert Weather().invoke({"city": "Rome"}) == "rain in Rome"
    assert len(taping.calls()) == 1


def _graph(tools: list) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.set_entry_point("tools")
    graph.set_finish_point("tools")
    return graph.compile()


def _asking(*calls: dict) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))
