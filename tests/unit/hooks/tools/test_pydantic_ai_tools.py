"""Pydantic AI's function tools, driven by its own test model."""

import asyncio
from dataclasses import dataclass

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from playhead.hooks.tools.decorator import tool


@pytest.fixture(autouse=True)
def _hooked(hooks):
    hooks("tool")


class Forecast(BaseModel):
    city: str
    degrees: float


@dataclass
class Desk:
    name: str


def asking(*calls: tuple[str, dict]):
    """A model that asks for these tools one after the other, then says what they gave."""

    def respond(messages: list, info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(one, ModelResponse) for one in messages)
        if done < len(calls):
            name, arguments = calls[done]
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        parts = messages[-1].parts
        return ModelResponse(parts=[TextPart(" ".join(str(one.content) for one in parts))])

    return FunctionModel(respond)


def test_sync_and_async_tools_are_recorded_with_arguments_and_results(taping):
    agent = Agent(asking(("add", {"a": 1, "b": 2}), ("greet", {"who": "ada"})), deps_type=Desk)

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        return a + b

    @agent.tool
    async def greet(ctx: RunContext[Desk], who: str) -> str:
        return f"{ctx.deps.name} greets {who}"

    assert asyncio.run(agent.run("go", deps=Desk("front"))).output == "front greets ada"
    assert taping.shown() == [
        ("add", {"a": 1, "b": 2}, 3),
        ("greet", {"who": "ada"}, "front greets ada"),
    ]


def test_a_wish_to_be_asked_again_is_an_outcome_and_is_served_as_one(taping, replaying):
    tries = []

    def run() -> str:
        agent = Agent(asking(("guess", {"n": 1}), ("guess", {"n": 2})))

        @agent.tool_plain(retries=2)
        def guess(n: int) -> str:
            tries.append(n)
            if n == 1:
                raise ModelRetry("too low")
            return "right"

        return asyncio.run(agent.run("go")).output

    assert run() == "right"
    assert taping.shown() == [
        ("guess", {"n": 1}, "pydantic_ai.exceptions:ModelRetry"),
        ("guess", {"n": 2}, "right"),
    ]
    with replaying(taping) as again:
        assert run() == "right"
        assert again.shown() == taping.shown()
    assert tries == [1, 2]


def test_models_that_a_tool_returns_come_back_as_models(taping, replaying):
    seen = []

    def run() -> None:
        agent = Agent(asking(("forecast", {"city": "Rome"})))

        @agent.tool_plain
        def forecast(city: str) -> Forecast:
            return Forecast(city=city, degrees=21.5)

        result = asyncio.run(agent.run("go"))
        seen.append([one.content for one in result.all_messages()[2].parts])

    run()
    with replaying(taping):
        run()
    assert seen[0] == seen[1] == [Forecast(city="Rome", degrees=21.5)]


def test_a_tool_goes_by_the_name_that_the_model_used(taping):
    tools = FunctionToolset()

    @tools.tool_plain
    def add(a: int) -> int:
        return a + 1

    agent = Agent(asking(("math_add", {"a": 1})), toolsets=[tools.prefixed("math")])
    assert asyncio.run(agent.run("go")).output == "2"
    assert taping.shown() == [("math_add", {"a": 1}, 2)]


def test_a_function_that_is_our_tool_too_is_recorded_once(taping):
    @tool(effect="write")
    def save(text: str) -> str:
        return text

    agent = Agent(asking(("save", {"text": "x"})), tools=[save])
    assert asyncio.run(agent.run("go")).output == "x"
    assert taping.shown() == [("save", {"text": "x"}, "x")]
    assert taping.call("save").data["effect"] == "write"
