"""The OpenAI Agents SDK's function tools, driven by a model that a test scripts."""

import asyncio
import json

import pytest

from playhead.hooks.tools.decorator import tool

pytestmark = pytest.mark.agents  # in its own environment: it pins websockets


@pytest.fixture
def agents(hooks, monkeypatch):
    hooks("tool")
    import agents

    agents.set_tracing_disabled(True)
    return agents


def asking(agents, *calls: tuple[str, dict]):
    """A model that asks for these tools one after the other, then says what the last one gave."""
    from agents.models.interface import Model, ModelResponse
    from agents.usage import Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        def __init__(self):
            self.left = list(calls)

        async def get_response(self, system_instructions, input, *args, **kwargs):  # noqa: A002
            if self.left:
                name, arguments = self.left.pop(0)
                item = ResponseFunctionToolCall(
                    type="function_call",
                    name=name,
                    arguments=json.dumps(arguments),
                    call_id=f"call_{len(self.left)}",
                )
            else:
                text = str(input[-1]["output"])
                content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=content
                )
            return ModelResponse(output=[item], usage=Usage(), response_id="r")

        def stream_response(self, *args, **kwargs):
            raise NotImplementedError

    return Scripted()


def run(agents, tools, *calls):
    agent = agents.Agent(name="a", model=asking(agents, *calls), tools=tools)
    return asyncio.run(agents.Runner.run(agent, "go")).final_output


def test_sync_and_async_tools_are_recorded_with_arguments_and_results(agents, taping):
    @agents.function_tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @agents.function_tool
    async def greet(who: str) -> str:
        """Greet."""
        return f"hello {who}"

    said = run(agents, [add, greet], ("add", {"a": 1, "b": 2}), ("greet", {"who": "ada"}))
    assert said == "hello ada"
    assert taping.shown() == [
        ("add", {"a": 1, "b": 2}, 3),
        ("greet", {"who": "ada"}, "hello ada"),
    ]
    assert taping.calls()[0].data["library"] == "openai-agents"


def test_an_error_that_the_sdk_turns_into_words_is_on_the_tape_as_those(agents, taping, replaying):
    ran = []

    def once() -> str:
        @agents.function_tool
        def fragile(n: int) -> str:
            """Break."""
            ran.append(n)
            raise ValueError("broke")

        return run(agents, [fragile], ("fragile", {"n": 1}))

    live = once()
    assert "error occurred" in live
    with replaying(taping) as again:
        assert once() == live
        assert again.shown() == taping.shown()
    assert ran == [1]


def test_an_exception_that_ends_the_run_is_served_as_one(agents, taping, replaying):
    def once() -> None:
        @agents.function_tool(failure_error_function=None)
        def fatal() -> str:
            """Break."""
            raise ValueError("broke for good")

        with pytest.raises(agents.UserError, match="broke for good"):
            run(agents, [fatal], ("fatal", {}))

    once()
    assert taping.shown() == [("fatal", {}, "builtins:ValueError")]
    with replaying(taping):
        once()


def test_a_served_tool_does_not_run(agents, taping, replaying):
    ran = []

    def once() -> str:
        @agents.function_tool
        def roll() -> agents.ToolOutputText:
            """Roll."""
            ran.append(1)
            return agents.ToolOutputText(text=f"rolled {len(ran)}")

        return run(agents, [roll], ("roll", {}))

    live = once()
    with replaying(taping):
        assert once() == live
    assert ran == [1]


def test_a_function_that_is_our_tool_too_is_recorded_once(agents, taping):
    @tool(effect="read")
    def lookup(key: str) -> str:
        """Look."""
        return key

    made = agents.function_tool(lookup, name_override="find")
    assert run(agents, [made], ("find", {"key": "k"})) == "k"
    assert taping.shown() == [("find", {"key": "k"}, "k")]
    assert taping.call("find").data["effect"] == "read"


def test_an_agent_as_a_tool_encloses_what_it_does(agents, taping):
    @agents.function_tool
    def inner(n: int) -> int:
        """Inner."""
        return n + 1

    helper = agents.Agent(name="h", model=asking(agents, ("inner", {"n": 1})), tools=[inner])
    made = helper.as_tool("ask_helper", "Ask.")
    assert run(agents, [made], ("ask_helper", {"input": "x"})) == "2"
    assert taping.call("inner").parent == taping.call("ask_helper").seq
