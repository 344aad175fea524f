import pytest

from playhead.llm import (
    LlmError,
    LlmMessage,
    LlmRequest,
    LlmResponse,
    LlmTool,
    Refusal,
    Text,
    Thinking,
    ToolUse,
    decode_request,
    decode_response,
    summary,
)

API = "anthropic.messages"


def said(*parts, **fields):
    return summary(LlmResponse(api=API, parts=parts, **fields))


def call(name, arguments, **fields):
    return ToolUse(id="t", name=name, arguments=arguments, **fields)


def test_a_question_is_its_model_and_its_size():
    message = LlmMessage(role="user", parts=(Text(text="hi"),))
    request = LlmRequest(
        api=API, model="claude-sonnet-4-5", messages=(message,) * 3, tools=(LlmTool(name="f"),) * 2
    )
    assert summary(request) == "claude-sonnet-4-5 · 3 messages · 2 tools"
    assert summary(LlmRequest(api=API, model=None, messages=(message,))) == (
        "unknown model · 1 message"
    )


def test_a_question_that_goes_on_says_after_what():
    request = LlmRequest(api="openai.responses", model="gpt-5", previous_id="resp_1")
    assert summary(request) == "gpt-5 · 0 messages · after resp_1"


def test_a_question_that_cannot_be_read_says_so():
    assert summary(decode_request(API, b"")) == "unknown model · unreadable: the body is empty"


def test_an_answer_is_its_text_and_its_calls():
    line = said(Text(text="The weather:"), call("search", {"q": "Zürich", "n": 3}))
    assert line == '"The weather:" → search(q="Zürich", n=3)'


def test_calls_stand_alone_and_side_by_side():
    assert said(call("a", {}), call("b", {"x": [1], "y": {"z": 1}, "w": None})) == (
        "→ a(), b(x=[…], y={…}, w=null)"
    )
    assert said(call("sh", "ls -l")) == '→ sh("ls -l")'


def test_a_cut_call_is_left_open():
    line = said(call("f", '{"q": "we', complete=False), complete=False, reason="it ended")
    assert line == r'→ f("{\"q\": \"we"… · cut: it ended'


def test_long_text_is_shortened():
    line = said(Text(text="word " * 100))
    assert line == '"word word word word word word word word…"'


@pytest.mark.parametrize("width", [20, 60, 100])
def test_a_line_is_never_wider_than_asked(width):
    answer = LlmResponse(
        api=API,
        parts=(Text(text="x" * 500), *(call("tool" * 9, {"a" * 99: "b" * 99}) for _ in range(9))),
    )
    assert len(summary(answer, width=width)) == width


def test_thinking_refusals_and_silence_have_words():
    assert said(Thinking(text="Hm.")) == 'thought: "Hm."'
    assert said(Refusal(text="No.")) == 'refused: "No."'
    assert said(Text(text="Well"), Refusal(text="No.")) == '"Well" · refused: "No."'
    assert said() == "nothing said"


def test_errors_and_limits_are_said():
    error = LlmError(status=529, type="overloaded_error", message="Overloaded")
    assert said(error=error) == "529 overloaded_error: Overloaded"
    quota = LlmError(status=429, type="tokens", code="rate_limit_exceeded", message="Slow down")
    assert said(error=quota) == "429 rate_limit_exceeded: Slow down"
    assert said(error=LlmError(status=None, type=None, message=None)) == "error"
    assert said(Text(text="a"), stop_reason="max_tokens") == '"a" · token limit reached'


def test_what_a_model_wrote_cannot_drive_the_terminal():
    line = said(Text(text="\x1b[2Jgone\x07\u202e\ud800"), call("f\x1b", {"k\x1b": "v\x9b"}))
    assert "\x1b" not in line
    assert "\x9b" not in line
    assert line.isprintable()


def test_one_line_is_one_line():
    assert said(Text(text="a\r\nb\tc\u2028d")) == '"a b c d"'


def test_summaries_of_real_answers(sample):
    answer = decode_response("gemini.generate", 200, {}, sample("gemini_response.json"))
    assert summary(answer) == '"Hello 👋 wörld" → search(q="weather") · token limit reached'
