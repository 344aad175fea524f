"""What the real Google GenAI SDK makes of the scripted server's answers."""

import asyncio
import warnings

import httpx2
import pytest

from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall, Usage

with warnings.catch_warnings():
    # google-genai 3.1 has an invalid escape in a docstring, which is an error here.
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import errors, types

FULL = Reply(
    text="Naïve → answer.",
    thinking="Let me think.",
    tool_calls=[ToolCall(name="ls", arguments={"path": "/tmp"})],
    usage=Usage(input=10, output=20, cache_read=300, reasoning=7),
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:google")


@pytest.fixture
def client_of():
    clients = []

    def make(llm, version="v1beta"):
        options = types.HttpOptions(base_url=llm.url, api_version=version)
        clients.append(genai.Client(api_key="AIzaSyX", http_options=options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def assert_usage(usage):
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (310, 300)
    assert (usage.candidates_token_count, usage.thoughts_token_count) == (13, 7)
    assert usage.total_token_count == 330


@pytest.mark.parametrize("version", ["v1beta", "v1"])
def test_a_plain_answer_has_thoughts_text_calls_and_usage(client_of, version):
    with ScriptedLLM([FULL]) as llm:
        answer = client_of(llm, version).models.generate_content(model="gem-x", contents="Hi")
        (request,) = llm.requests
    thought, text, call = answer.candidates[0].content.parts
    assert (thought.text, thought.thought) == ("Let me think.", True)
    assert (text.text, text.thought) == ("Naïve → answer.", None)
    assert (call.function_call.name, call.function_call.args) == ("ls", {"path": "/tmp"})
    assert call.thought_signature
    assert answer.candidates[0].finish_reason == "STOP"
    assert (answer.model_version, answer.text) == ("gem-x", "Naïve → answer.")
    assert request.path == f"/{version}/models/gem-x:generateContent"
    assert (request.model, request.stream, request.prompt) == ("gem-x", False, "Hi")
    assert_usage(answer.usage_metadata)


def test_a_streamed_answer_adds_up_to_the_plain_one(client_of):
    with ScriptedLLM([FULL]) as llm:
        models = client_of(llm).models
        chunks = list(models.generate_content_stream(model="gem-x", contents="Hi"))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert "".join(part.text for part in parts if part.thought) == "Let me think."
    said = [part.text for part in parts if part.text and not part.thought]
    assert "".join(said) == "Naïve → answer."
    assert len(said) > 1
    assert parts[-1].function_call.name == "ls"
    reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["STOP"]
    assert len({chunk.response_id for chunk in chunks}) == 1
    assert_usage(chunks[-1].usage_metadata)


def test_an_async_stream_gives_the_pieces_that_the_script_asks_for(client_of):
    async def ask(client):
        async with client.aio as aio:
            stream = await aio.models.generate_content_stream(model="gem-x", contents="Hi")
            return [chunk.text async for chunk in stream]

    with ScriptedLLM([Reply(text="abcdef", chunks=3)]) as llm:
        assert asyncio.run(ask(client_of(llm))) == ["ab", "cd", "ef"]


def test_a_tool_loop_reads_the_result_as_the_last_user_message(client_of):
    first = types.Content(role="user", parts=[types.Part(text="List.")])
    call = types.Part(function_call=types.FunctionCall(name="ls", args={}))
    told = types.Part.from_function_response(name="ls", response={"output": "two files"})
    contents = [
        first,
        types.Content(role="model", parts=[call]),
        types.Content(role="user", parts=[told]),
    ]
    config = types.GenerateContentConfig(system_instruction="Be brief.")
    with ScriptedLLM([{"when": {"contains": "two files"}, "text": "Two."}]) as llm:
        answer = client_of(llm).models.generate_content(
            model="gem-x", contents=contents, config=config
        )
        (request,) = llm.requests
    assert answer.text == "Two."
    assert request.turn == 2
    assert request.messages[0].text == "Be brief."


def test_errors_have_the_shape_that_the_sdk_expects(client_of):
    script = [Reply(error=Failure(status=429, message="No.", retry_after=3))]
    with ScriptedLLM(script) as llm, pytest.raises(errors.ClientError) as failed:
        client_of(llm).models.generate_content(model="gem-x", contents="Hi")
    assert (failed.value.code, failed.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert failed.value.message == "No."
    assert failed.value.details["error"]["details"][0]["retryDelay"] == "3s"


def test_a_cut_stream_gives_the_chunks_before_the_cut_and_then_breaks(client_of):
    heard = []
    with ScriptedLLM([Reply(text="abcd", chunks=4, cut=Cut(after=2, mid_event=True))]) as llm:
        models = client_of(llm).models
        with pytest.raises(httpx2.RemoteProtocolError):
            heard.extend(
                chunk.text for chunk in models.generate_content_stream(model="gem-x", contents="Hi")
            )
    assert heard == ["a", "b"]


def test_tokens_are_counted_without_using_up_a_reply(client_of):
    with ScriptedLLM(["Once."]) as llm:
        models = client_of(llm).models
        assert 0 < models.count_tokens(model="gem-x", contents="Hi there").total_tokens < 20
        assert models.generate_content(model="gem-x", contents="Hi").text == "Once."


def test_without_sse_a_stream_is_one_json_array():
    path = "/v1beta/models/gem-x:streamGenerateContent"
    with ScriptedLLM([Reply(text="abcd", chunks=2)]) as llm:
        answer = httpx2.post(llm.url + path, json={"contents": [{"parts": [{"text": "Hi"}]}]})
    texts = [one["candidates"][0]["content"]["parts"][0]["text"] for one in answer.json()]
    assert texts == ["ab", "cd"]


def test_models_are_listed_in_the_manner_of_gemini(client_of):
    with ScriptedLLM(["x"]) as llm:
        names = [model.name for model in client_of(llm).models.list()]
    assert "models/gemini-3.8-flash" in names
