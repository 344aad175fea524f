"""smolagents' tools, called by its agents and by code that a model wrote."""

import pytest

from playhead.hooks.tools.decorator import tool as playhead_tool

pytestmark = pytest.mark.agents  # in its own environment, beside an older openai


@pytest.fixture
def smolagents(hooks):
    hooks("tool")
    import smolagents

    return smolagents


def make_add(smolagents, ran=None):
    class Add(smolagents.Tool):
        name = "add"
        description = "Add."
        inputs = {  # noqa: RUF012  as the library has it
            "a": {"type": "integer", "description": "one"},
            "b": {"type": "integer", "description": "other"},
        }
        output_type = "integer"

        def forward(self, a: int, b: int) -> int:
            if ran is not None:
                ran.append((a, b))
            return a + b

    return Add()


def test_arguments_are_named_however_they_are_given(smolagents, taping):
    add = make_add(smolagents)
    assert [add(1, 2), add(a=1, b=3), add({"a": 1, "b": 4}), add(1, b=5)] == [3, 4, 5, 6]
    assert [row[1]["b"] for row in taping.shown()] == [2, 3, 4, 5]
    assert taping.shown()[0] == ("add", {"a": 1, "b": 2}, 3)


def test_a_function_made_a_tool_is_recorded(smolagents, taping):
    @smolagents.tool
    def shout(text: str) -> str:
        """Louder.

        Args:
            text: What.
        """
        return text.upper()

    assert str(shout("hey", sanitize_inputs_outputs=True)) == "HEY"
    assert taping.shown() == [("shout", {"text": "hey"}, "HEY")]


def test_code_that_a_model_wrote_calls_tools_and_is_served(smolagents, taping, replaying):
    ran = []

    def once() -> object:
        executor = smolagents.LocalPythonExecutor([])
        executor.send_tools({"add": make_add(smolagents, ran)})
        return executor("add(add(1, 2), b=3)").output

    assert once() == 6
    with replaying(taping):
        assert once() == 6
    assert ran == [(1, 2), (3, 3)]


def test_results_come_back_in_the_library_s_own_classes(smolagents, taping, replaying):
    def once() -> object:
        return make_shout(smolagents)("hey", sanitize_inputs_outputs=True)

    live = once()
    with replaying(taping):
        served = once()
    assert type(served) is type(live)
    assert str(served) == "hey!"


def test_an_exception_is_the_outcome_and_is_served(smolagents, taping, replaying):
    class Fail(smolagents.Tool):
        name = "fail"
        description = "Fail."
        inputs = {}  # noqa: RUF012
        output_type = "string"

        def forward(self) -> str:
            raise ValueError("no")

    def once() -> None:
        with pytest.raises(ValueError, match="no"):
            Fail()()

    once()
    with replaying(taping) as again:
        once()
        assert again.shown() == [("fail", {}, "builtins:ValueError")]


def test_a_method_that_is_our_tool_too_is_recorded_once(smolagents, taping):
    class Look(smolagents.Tool):
        name = "look"
        description = "Look."
        inputs = {"key": {"type": "string", "description": "k"}}  # noqa: RUF012
        output_type = "string"

        @playhead_tool(effect="read")
        def forward(self, key: str) -> str:
            return key

    assert Look()("k") == "k"
    assert taping.shown() == [("look", {"key": "k"}, "k")]
    assert taping.call("look").data["effect"] == "read"


def make_shout(smolagents):
    class Shout(smolagents.Tool):
        name = "shout"
        description = "Louder."
        inputs = {"text": {"type": "string", "description": "what"}}  # noqa: RUF012
        output_type = "string"

        def forward(self, text: str) -> str:
            return text + "!"

    return Shout()
