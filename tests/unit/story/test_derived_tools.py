"""Tools of a hand-written loop: what a response asked for, and a later request answered."""

import pytest

from playhead.llm import LlmExchange, LlmRequest, LlmResponse, ToolResult, ToolUse
from playhead.llm.llm_exchange import LlmMessage, Text
from playhead.story import tell
from playhead.story.derived_tools import with_derived_tools
from playhead.story.shape import CallItem, Mark
from playhead.tape.reader import Tape
from playhead.testing import Reply, ToolCall


def asks(*calls):
    return Reply(
        text="Let me look.", tool_calls=[ToolCall(id=i, name=n, arguments=a) for i, n, a in calls]
    )


def results(*those):
    """The messages of a loop that sends these results: (id, content, is_error)."""
    used = [{"type": "tool_use", "id": i, "name": "x", "input": {}} for i, _, _ in those]
    back = [
        {"type": "tool_result", "tool_use_id": i, "content": text, "is_error": error}
        for i, text, error in those
    ]
    return [{"role": "assistant", "content": used}, {"role": "user", "content": back}]


def tools_of(path):
    return [one for one in tell(Tape(path)).calls() if one.boundary == "tool"]


@pytest.fixture
def loop(forge):
    """Two tools in one response; one of them fails. A command of the first is on the tape."""
    tape = forge()
    asked = tape.llm(
        "go", asks(("t1", "bash", {"command": 'echo "hi"'}), ("t2", "read", {"path": "/x"}))
    )
    process = tape.call("process", "sh", cause=asked, command='echo "hi"')
    tape.outcome(process, value={"code": 0})
    tape.now += 2
    sent = results(("t1", "hi", False), ("t2", "no such file", True))
    tape.llm("go", Reply(text="done"), more=sent)
    return tape.end()


def test_a_tool_has_its_arguments_result_duration_and_cause(loop):
    bash, read = tools_of(loop)
    assert (bash.name, bash.request, bash.value) == (
        "bash",
        {"arguments": {"command": 'echo "hi"'}},
        "hi",
    )
    assert bash.took_ns == 2_000_000_000
    assert bash.facts["derived"] is True
    assert read.how == "raised"
    assert read.failure.message == "no such file"
    story = tell(Tape(loop))
    asked = story.call(1)
    assert story.children[asked.ref] == (bash.ref, read.ref)


def test_a_command_stands_below_the_tool_that_ran_it(loop):
    story = tell(Tape(loop))
    bash = tools_of(loop)[0]
    assert [story.items[ref].boundary for ref in story.children[bash.ref]] == ["process"]


def test_derived_tools_count_as_tools_and_failures_and_not_as_calls(loop):
    totals = tell(Tape(loop)).totals
    assert (totals.calls, totals.tool_calls, totals.failures) == (3, 2, 1)


def test_recorded_calls_keep_their_numbers(loop):
    story = tell(Tape(loop))
    assert [call.boundary for call in story.calls()] == ["llm", "process", "llm", "tool", "tool"]


def test_a_tool_that_a_hook_saw_is_not_derived(forge):
    tape = forge()
    asked = tape.llm("go", asks(("t1", "bash", {}), ("t2", "mcp__files__read", {})))
    tape.tool("bash", {}, cause=asked)
    tape.tool("read", {}, cause=asked)
    tape.llm("go", Reply(text="done"), more=results(("t1", "hi", False), ("t2", "x", False)))
    assert len(tools_of(tape.end())) == 2


def test_a_tool_that_a_hook_saw_without_its_cause_is_not_derived(forge):
    tape = forge()
    tape.llm("go", asks(("t1", "bash", {})))
    tape.tool("bash", {})
    tape.llm("go", Reply(text="done"), more=results(("t1", "hi", False)))
    assert len(tools_of(tape.end())) == 1


def test_a_tool_whose_result_was_never_sent_is_not_derived(forge):
    tape = forge()
    tape.llm("go", asks(("t1", "final_answer", {"text": "42"})))
    assert tools_of(tape.end()) == []


def test_results_that_a_conversation_repeats_are_counted_once(forge):
    tape = forge()
    tape.llm("go", asks(("t1", "bash", {})))
    first = results(("t1", "one", False))
    tape.llm("go", asks(("t2", "bash", {})), more=first)
    tape.llm("go", Reply(text="done"), more=[*first, *results(("t2", "two", False))])
    assert [one.value for one in tools_of(tape.end())] == ["one", "two"]


def exchange(number, *, uses=(), brought=()):
    messages = (
        LlmMessage(role="assistant", parts=(Text(text="…"),)),
        LlmMessage(role="user", parts=tuple(brought)),
    )
    return CallItem(
        number=number, ref=f"1:{number}", boundary="llm", name="gemini", lane="main", wall=0, mono=number, place=number,
        ended=Mark(mono=number, place=number),
        llm=(LlmExchange(
            request=LlmRequest(api="gemini", model="m", messages=messages),
            response=LlmResponse(api="gemini", parts=tuple(uses)),
        ),),
    )  # fmt: skip


def test_results_without_ids_are_paired_by_name_in_order():
    use, back = (
        lambda name: ToolUse(id=None, name=name, arguments={}),
        lambda name, text: ToolResult(id=None, name=name, content=(Text(text=text),)),
    )
    asked = exchange(1, uses=[use("a"), use("b"), use("a")])
    answered = exchange(2, brought=[back("a", "1"), back("b", "2"), back("a", "3")])
    found = with_derived_tools({one.ref: one for one in (asked, answered)})
    tools = [one for one in found.values() if one.boundary == "tool"]
    assert [(one.name, one.value) for one in tools] == [("a", "1"), ("b", "2"), ("a", "3")]
