"""What the real Anthropic SDK makes of the scripted server's answers."""

import asyncio
import json

import anthropic
import httpx2
import pytest

from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall, Usage

ASK = {"model": "claude-x", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"name": "ls", "description": "List", "input_schema": {"type": "object"}}
FULL = Reply(
    text="Naïve → answer.",
    thinking="Let me think about it.",
    tool_calls=[
        ToolCall(name="ls", arguments={"path": "/tmp/ü"}),
        ToolCall(name="cat", arguments={"path": "b"}, id="toolu_mine"),
    ],
    usage=Usage(input=10, output=20, cache_read=300, cache_write=40, reasoning=7),
)


def client_of(llm, **options):
    return anthropic.Anthropic(base_url=llm.url, api_key="sk-ant-x", **options)


def assert_full(message):
    thinking, text, ls, cat = message.content
    assert thinking.thinking == "Let me think about it."
    assert len(thinking.signature) > 100
    assert text.text == "Naïve → answer."
    assert (ls.name, ls.input) == ("ls", {"path": "/tmp/ü"})
    assert ls.id.startswith("toolu_01")
    assert len(ls.id) == 30
    assert (cat.id, cat.input) == ("toolu_mine", {"path": "b"})
    assert message.stop_reason == "tool_use"
    assert message.model == "claude-x"
    assert message.id.startswith("msg_01")
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (10, 20)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (300, 40)
    assert usage.output_tokens_details.thinking_tokens == 7


def test_a_plain_message_has_thinking_text_tools_and_usage():
    with ScriptedLLM([FULL]) as llm, client_of(llm) as client:
        message = client.messages.create(**ASK)
    assert_full(message)
    assert message._request_id.startswith("req_011C")


def test_a_streamed_message_adds_up_to_the_plain_one():
    with (
        ScriptedLLM([FULL]) as llm,
        client_of(llm) as client,
        client.messages.stream(**ASK) as stream,
    ):
        assert_full(stream.get_final_message())


def test_a_stream_has_the_events_of_the_api_in_their_order():
    reply = Reply(text="abcd", thinking="ef", chunks=2)
    with (
        ScriptedLLM([reply]) as llm,
        client_of(llm) as client,
        client.messages.with_streaming_response.create(**ASK, stream=True) as response,
    ):
        lines = list(response.iter_lines())
    kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert kinds == [
        "message_start",
        *("content_block_start", "ping", "content_block_delta", "content_block_delta"),
        *("content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta"),
        "content_block_stop",
        *("message_delta", "message_stop"),
    ]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    deltas = [one["delta"] for one in data if one["type"] == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == [
        *("thinking_delta", "thinking_delta", "signature_delta"),
        *("text_delta", "text_delta"),
    ]
    assert data[0]["message"]["usage"]["output_tokens"] == 1


def test_an_async_client_gets_the_same():
    async def ask(llm):
        async with anthropic.AsyncAnthropic(base_url=llm.url, api_key="x") as client:
            plain = await client.messages.create(**ASK)
            async with client.messages.stream(**ASK) as stream:
                return plain, await stream.get_final_message()

    with ScriptedLLM([FULL, FULL]) as llm:
        for message in asyncio.run(ask(llm)):
            assert_full(message)


def test_a_tool_loop_reads_the_result_as_the_last_user_message():
    script = [
        {"tool_calls": [{"name": "ls", "arguments": {}}]},
        {"when": {"contains": "two files"}, "text": "There are two."},
    ]
    with ScriptedLLM(script) as llm, client_of(llm) as client:
        first = client.messages.create(**ASK, tools=[TOOL], system="You list files.")
        result = {"type": "tool_result", "tool_use_id": first.content[0].id}
        messages = [
            *ASK["messages"],
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [{**result, "content": "two files"}]},
        ]
        second = client.messages.create(**{**ASK, "messages": messages}, tools=[TOOL])
        asked, again = llm.requests
    assert second.content[0].text == "There are two."
    assert (asked.wire, asked.model, asked.turn, asked.prompt) == ("anthropic", "claude-x", 1, "Hi")
    assert asked.messages[0].text == "You list files."
    assert (again.turn, again.prompt) == (2, "two files")


@pytest.mark.parametrize("status", [429, 500, 529])
def test_the_sdk_retries_and_then_succeeds(status):
    script = [Reply(error=Failure(status=status, retry_after=0.001)), "Now."]
    with ScriptedLLM(script) as llm, client_of(llm, max_retries=1) as client:
        assert client.messages.create(**ASK).content[0].text == "Now."
        first, second = llm.requests
    assert first.json == second.json
    assert second.headers["x-stainless-retry-count"] == "1"


ERRORS = [
    (400, anthropic.BadRequestError, "invalid_request_error"),
    (429, anthropic.RateLimitError, "rate_limit_error"),
    (529, anthropic.OverloadedError, "overloaded_error"),
    (503, anthropic.APIStatusError, "api_error"),
]


@pytest.mark.parametrize(("status", "kind", "name"), ERRORS)
def test_errors_have_the_shape_that_the_sdk_expects(status, kind, name):
    script = [Reply(error=Failure(status=status, message="No.", retry_after=3))]
    with (
        ScriptedLLM(script) as llm,
        client_of(llm, max_retries=0) as client,
        pytest.raises(kind) as failed,
    ):
        client.messages.create(**ASK)
    assert failed.value.body["error"] == {"type": name, "message": "No."}
    assert failed.value.body["request_id"] == failed.value.response.headers["request-id"]
    assert failed.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("mid_event", [False, True])
def test_a_cut_stream_gives_the_events_before_the_cut_and_then_breaks(mid_event):
    reply = Reply(text="abcdef", chunks=6, cut=Cut(after=5, mid_event=mid_event))
    texts = []
    with (
        ScriptedLLM([reply]) as llm,
        client_of(llm) as client,
        client.messages.stream(**ASK) as stream,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        texts.extend(stream.text_stream)
    assert texts == ["a", "b"]


def test_a_plain_message_that_is_cut_is_a_connection_error():
    script = [Reply(text="abc", cut=Cut(after=0)), "Whole."]
    with ScriptedLLM(script) as llm:
        with client_of(llm, max_retries=0) as client, pytest.raises(anthropic.APIConnectionError):
            client.messages.create(**ASK)
        with client_of(llm) as client:
            assert client.messages.create(**ASK).content[0].text == "Whole."


def test_a_stream_may_fail_after_it_has_begun():
    reply = Reply(text="abcdef", chunks=6, error=Failure(status=529, after=4))
    with (
        ScriptedLLM([reply]) as llm,
        client_of(llm) as client,
        client.messages.stream(**ASK) as stream,
        pytest.raises(anthropic.APIStatusError) as failed,
    ):
        stream.until_done()
    assert failed.value.body["error"]["type"] == "overloaded_error"


def test_a_stalled_stream_lets_the_client_run_into_its_timeout():
    reply = Reply(text="abc", chunks=3, cut=Cut(after=4, how="stall"))
    with (
        ScriptedLLM([reply]) as llm,
        client_of(llm, timeout=1, max_retries=0) as client,
        client.messages.stream(**ASK) as stream,
        pytest.raises(httpx2.ReadTimeout),
    ):
        stream.until_done()


def test_tokens_are_counted_without_using_up_a_reply():
    with ScriptedLLM(["Once."]) as llm, client_of(llm) as client:
        few = client.messages.count_tokens(model="claude-x", messages=ASK["messages"])
        long = [{"role": "user", "content": "word " * 1000}]
        many = client.messages.count_tokens(model="claude-x", messages=long)
        assert client.messages.create(**ASK).content[0].text == "Once."
    assert 0 < few.input_tokens < 20
    assert 1000 < many.input_tokens < 2000


def test_usage_that_the_script_leaves_open_grows_with_the_texts():
    with ScriptedLLM(["One.", "One word more, and another. " * 9]) as llm, client_of(llm) as client:
        small = client.messages.create(**ASK).usage
        large = client.messages.create(**ASK, tools=[TOOL], system="Be brief. " * 50).usage
    assert 0 < small.input_tokens < large.input_tokens
    assert 0 < small.output_tokens < large.output_tokens
    assert small.cache_read_input_tokens == 0


def test_arguments_that_are_no_json_go_out_in_a_stream_as_they_are():
    reply = Reply(tool_calls=[ToolCall(name="ls", arguments='{"path": ')])
    with ScriptedLLM([reply, reply]) as llm, client_of(llm, max_retries=0) as client:
        said = "".join(
            event.delta.partial_json
            for event in client.messages.create(**ASK, stream=True)
            if event.type == "content_block_delta"
        )
        with pytest.raises(anthropic.InternalServerError, match="not JSON"):
            client.messages.create(**ASK)
    assert said == '{"path": '


def test_models_are_listed_in_the_manner_of_anthropic():
    with ScriptedLLM([Reply(model="claude-mine")]) as llm, client_of(llm) as client:
        assert "claude-mine" in [model.id for model in client.models.list()]
        assert client.models.retrieve("claude-mine").display_name == "claude-mine"
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("claude-other")
