"""What is asked can be changed for every API, without touching the agent."""

import json

import pytest

from playhead.errors import UsageError
from playhead.replay.modes.edits import Rewrite, parse_patch


def applied(api, body, **change):
    return json.loads(Rewrite(**change).apply(api, json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("api", "place"),
    [
        ("anthropic.messages", lambda body: body["system"]),
        ("openai.chat", lambda body: body["messages"][0]["content"]),
        ("openai.responses", lambda body: body["instructions"]),
        ("gemini.generate", lambda body: body["systemInstruction"]["parts"][0]["text"]),
    ],
)
def test_the_system_prompt_goes_where_the_api_keeps_it(api, place):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert place(applied(api, body, system="Be brief.")) == "Be brief."


def test_an_earlier_system_message_is_replaced_not_joined():
    body = {"messages": [{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}]}
    roles = [one["role"] for one in applied("openai.chat", body, system="new")["messages"]]
    assert roles == ["system", "user"]


def test_the_model_is_replaced():
    assert applied("openai.chat", {"model": "old"}, model="new") == {"model": "new"}


def test_a_shortened_history_never_begins_with_the_result_of_a_tool():
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    asked = {"role": "user", "content": "question"}
    answer = {"role": "assistant", "content": "…"}
    body = {"messages": [asked, answer, asked, answer, result, answer]}
    kept = applied("anthropic.messages", body, max_context_messages=2)["messages"]
    assert kept == [asked, answer, result, answer]


def test_a_patch_changes_adds_and_removes():
    steps = parse_patch(
        '[{"op":"replace","path":"/temperature","value":0},{"op":"remove","path":"/top_p"},'
        '{"op":"add","path":"/tools/-","value":{"name":"b"}}]',
        "p.json",
    )
    body = {"temperature": 1, "top_p": 1, "tools": [{"name": "a"}]}
    made = applied("openai.chat", body, patch=steps)
    assert made == {"temperature": 0, "tools": [{"name": "a"}, {"name": "b"}]}


def test_a_patch_of_a_field_that_is_not_there_leaves_the_body_alone():
    steps = parse_patch('[{"op":"replace","path":"/a/b/c","value":0}]', "p.json")
    assert applied("openai.chat", {"x": 1}, patch=steps) == {"x": 1}


@pytest.mark.parametrize("text", ["{", "{}", '[{"path":"/a"}]', '[{"op":"move","path":"/a"}]'])
def test_what_is_no_patch_is_said(text):
    with pytest.raises(UsageError):
        parse_patch(text, "p.json")


def test_a_body_that_is_no_json_is_left_alone():
    assert Rewrite(model="x").apply("openai.chat", b"\xff\x00") == b"\xff\x00"
