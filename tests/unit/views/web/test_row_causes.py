import json

from playhead.recording.chunks import as_text
from playhead.testing import Reply, ToolCall
from playhead.views.web.outline import WORDS, reasons


def test_a_model_is_asked_again_because_of_what_the_tool_gave_back(forge, told):
    tape = forge()
    uses = [ToolCall(name="look", arguments={"n": n}, id=f"toolu_{n}") for n in (1, 2)]
    first = tape.llm("Look twice.", Reply(text="", tool_calls=uses))
    looks = [tape.tool("look", {"n": n}, cause=first, value=n) for n in (1, 2)]
    asked = [
        {"role": "user", "content": "Look twice."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": one.id, "name": "look", "input": one.arguments}
                for one in uses
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": one.id, "content": "seen"} for one in uses
            ],
        },
    ]
    body = as_text(json.dumps({"model": "m", "messages": asked}).encode())
    second = tape.call("llm", "anthropic.messages m", {"body": body}, api="anthropic.messages")
    tape.end()
    found = reasons(told(tape))
    ref = f"{tape.pid}:"
    assert found[f"{ref}{second}"] == (f"{ref}{looks[1]}", WORDS.index("given the result of"))
    assert found[f"{ref}{looks[0]}"] == (f"{ref}{first}", WORDS.index("asked for by"))
