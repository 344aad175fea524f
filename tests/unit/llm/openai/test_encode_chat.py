"""What the real OpenAI SDK makes of the scripted server's chat completions."""

import asyncio

import openai
import pytest

from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall, Usage

ASK = {"model": "gpt-x", "messages": [{"role": "user", "content": "Hi"}]}
FULL = Reply(
    text="Naïve → answer.",
    thinking="Let me think.",
    tool_calls=[
        ToolCall(name="ls", arguments={"path": "/tmp"}),
        ToolCall(name="cat", arguments='{"path": ', id="call_mine"),
    ],
    usage=Usage(input=10, output=20, cache_read=300, reasoning=7),
)


def client_of(llm, **options):
    return openai.OpenAI(base_url=f"{llm.url}/v1", api_key="sk-x", **options)


def assert_usage(usage):
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (310, 20, 330)
    assert usage.prompt_tokens_details.cached_tokens == 300
    assert usage.completion_tokens_details.reasoning_tokens == 7


def test_a_plain_completion_has_text_tools_and_usage():
    with ScriptedLLM([FULL]) as llm, client_of(llm) as client:
        completion = client.chat.completions.create(**ASK)
    (choice,) = completion.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Naïve → answer."
    assert choice.message.reasoning_content == "Let me think."
    ls, cat = choice.message.tool_calls
    assert (ls.function.name, ls.function.arguments) == ("ls", '{"path": "/tmp"}')
    assert ls.id.startswith("call_")
    assert (cat.id, cat.function.arguments) == ("call_mine", '{"path": ')
    assert completion.id.startswith("chatcmpl-")
    assert completion._request_id.startswith("req_")
    assert_usage(completion.usage)


def test_a_streamed_completion_adds_up_to_the_plain_one():
    options = {"include_usage": True}
    with ScriptedLLM([FULL]) as llm, client_of(llm) as client:
        *chunks, last = client.chat.completions.create(**ASK, stream=True, stream_options=options)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == "Naïve → answer."
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert [call.function.name for call in calls if call.id] == ["ls", "cat"]
    for index, arguments in enumerate(['{"path": "/tmp"}', '{"path": ']):
        parts = [call.function.arguments for call in calls if call.index == index]
        assert "".join(parts) == arguments
        assert len(parts) > 1
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert {chunk.id for chunk in chunks} == {last.id}
    assert_usage(last.usage)


def test_usage_comes_in_a_stream_only_when_it_is_asked_for():
    with ScriptedLLM(["Hello."]) as llm, client_of(llm) as client:
        chunks = list(client.chat.completions.create(**ASK, stream=True))
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert all(chunk.choices for chunk in chunks)


def test_an_async_stream_gives_the_pieces_that_the_script_asks_for():
    async def ask(llm):
        async with openai.AsyncOpenAI(base_url=f"{llm.url}/v1", api_key="x") as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            return [chunk.choices[0].delta.content async for chunk in stream]

    with ScriptedLLM([Reply(text="abcdef", chunks=3, chunk_delay=0.001)]) as llm:
        assert asyncio.run(ask(llm)) == ["", "ab", "cd", "ef", None]


STOPS = [
    ("end_turn", "stop"),
    ("max_tokens", "length"),
    ("stop_sequence", "stop"),
    ("refusal", "content_filter"),
]


@pytest.mark.parametrize(("said", "heard"), STOPS)
def test_stop_reasons_are_translated(said, heard):
    with ScriptedLLM([Reply(text="x", stop_reason=said)]) as llm, client_of(llm) as client:
        assert client.chat.completions.create(**ASK).choices[0].finish_reason == heard


@pytest.mark.parametrize("status", [429, 500, 503])
def test_the_sdk_retries_and_then_succeeds(status):
    script = [Reply(error=Failure(status=status, retry_after=0.001)), "Now."]
    with ScriptedLLM(script) as llm, client_of(llm, max_retries=1) as client:
        assert client.chat.completions.create(**ASK).choices[0].message.content == "Now."
        assert len(llm.requests) == 2


def test_errors_have_the_shape_that_the_sdk_expects():
    script = [Reply(error=Failure(status=429)), Reply(error=Failure(status=400, message="No."))]
    with ScriptedLLM(script) as llm, client_of(llm, max_retries=0) as client:
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(**ASK)
        with pytest.raises(openai.BadRequestError, match=r"No\."):
            client.chat.completions.create(**ASK)
    assert (limited.value.code, limited.value.type) == ("rate_limit_exceeded", "requests")


def test_a_cut_stream_gives_the_chunks_before_the_cut_and_then_breaks():
    heard = []
    with (
        ScriptedLLM([Reply(text="abcdef", chunks=6, cut=Cut(after=3, mid_event=True))]) as llm,
        client_of(llm, max_retries=0) as client,
    ):
        stream = client.chat.completions.create(**ASK, stream=True)
        with pytest.raises(openai.APIConnectionError):
            heard.extend(chunk.choices[0].delta.content for chunk in stream)
    assert heard == ["", "a", "b"]


def test_a_stream_may_fail_after_it_has_begun():
    reply = Reply(text="abcdef", chunks=6, error=Failure(status=500, message="Boom.", after=3))
    with (
        ScriptedLLM([reply]) as llm,
        client_of(llm) as client,
        pytest.raises(openai.APIError, match=r"Boom\."),
    ):
        list(client.chat.completions.create(**ASK, stream=True))


def test_tool_results_and_system_prompts_are_read():
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "List."}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "two files"},
    ]
    with ScriptedLLM(["Two."]) as llm, client_of(llm) as client:
        client.chat.completions.create(model="gpt-x", messages=messages)
        (request,) = llm.requests
    assert [message.role for message in request.messages] == [
        *("system", "user", "assistant", "user")
    ]
    assert (request.prompt, request.turn) == ("two files", 2)


@pytest.mark.parametrize("base", ["", "/v1", "/proxy/openai/v1", "/openai/deployments/gpt-x"])
def test_any_base_url_will_do(base):
    with (
        ScriptedLLM(["Hello."]) as llm,
        openai.OpenAI(base_url=llm.url + base, api_key="x") as client,
    ):
        completion = client.chat.completions.create(**ASK)
        assert completion.choices[0].message.content == "Hello."
        assert "gpt-6.1-sol" in [model.id for model in client.models.list()]
