"""CrewAI's tools: run by name, by a structured tool, async, and counted in a replay."""

import asyncio

import pytest

from playhead.hooks.tools.decorator import tool as playhead_tool

pytestmark = pytest.mark.agents  # in its own environment, beside an older openai


@pytest.fixture
def tools(hooks, monkeypatch, tmp_path):
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))
    hooks("tool")
    import crewai.tools

    return crewai.tools


def make_search(tools, ran=None, **options):
    class Search(tools.BaseTool):
        name: str = "Search The Web"
        description: str = "Find."

        def _run(self, query: str) -> str:
            if ran is not None:
                ran.append(query)
            if query == "secret":
                raise ValueError("not that")
            return f"about {query}"

    return Search(**options)


def test_a_tool_is_recorded_under_the_name_that_the_model_is_told(tools, taping):
    assert make_search(tools).run(query="cats") == "about cats"
    assert taping.shown() == [("search_the_web", {"query": "cats"}, "about cats")]


def test_a_structured_tool_is_recorded_once(tools, taping):
    structured = make_search(tools).to_structured_tool()
    assert structured.invoke({"query": "cats"}) == "about cats"
    assert asyncio.run(structured.ainvoke({"query": "dogs"})) == "about dogs"
    assert taping.shown() == [
        ("search_the_web", {"query": "cats"}, "about cats"),
        ("search_the_web", {"query": "dogs"}, "about dogs"),
    ]


def test_functions_made_tools_sync_and_async_are_recorded(tools, taping):
    @tools.tool("Add Numbers")
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @tools.tool
    async def later(n: int) -> int:
        """Later."""
        return n

    assert add.run(a=1, b=2) == 3
    assert asyncio.run(later.arun(n=4)) == 4
    assert taping.shown() == [("add_numbers", {"a": 1, "b": 2}, 3), ("later", {"n": 4}, 4)]


def test_a_served_tool_does_not_run_and_is_counted(tools, taping, replaying):
    ran = []

    def once() -> tuple:
        search = make_search(tools, ran, max_usage_count=1)
        first, second = search.run(query="a"), search.run(query="b")
        return first, type(second).__name__, str(second), search.current_usage_count

    live = once()
    assert live[0] == "about a"
    assert live[3] == 1
    with replaying(taping):
        assert once() == live
    assert ran == ["a"]


def test_an_exception_is_served_as_one(tools, taping, replaying):
    def once() -> None:
        with pytest.raises(ValueError, match="not that"):
            make_search(tools).run(query="secret")

    once()
    with replaying(taping) as again:
        once()
        assert again.shown()[0][2] == "builtins:ValueError"


def test_a_function_that_is_our_tool_too_is_recorded_once(tools, taping):
    @playhead_tool(effect="read")
    def lookup(key: str) -> str:
        """Look."""
        return key

    assert tools.tool(lookup).run(key="k") == "k"
    assert taping.shown() == [("lookup", {"key": "k"}, "k")]
    assert taping.call("lookup").data["effect"] == "read"
