"""The real SDKs against the scripted model: recorded as LLM calls, then answered from the tape."""

import asyncio
import json
import warnings

import pytest

from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall


@pytest.fixture(autouse=True, scope="module")
def sdks():
    """Imported before the first test, and not by every worker that collects tests: it takes seconds."""
    global anthropic, httpx2, openai  # noqa: PLW0603
    import anthropic
    import httpx2
    import openai


with warnings.catch_warnings():
    # google-genai 3.1 has an invalid escape in a docstring, which is an error here.
    warnings.simplefilter("ignore")
    from google import genai

HELLO = [{"role": "user", "content": "hello"}]
SCRIPT = [Reply(text="Naïve → hello there, friend.", tool_calls=[ToolCall(name="ls")])]


def anthropic_plain(url):
    with anthropic.Anthropic(base_url=url, api_key="any") as client:
        got = client.messages.create(model="claude-sonnet-5-5", max_tokens=50, messages=HELLO)
        return got.model_dump_json()


def anthropic_stream(url):
    with anthropic.Anthropic(base_url=url, api_key="any") as client:
        asked = {"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": HELLO}
        with client.messages.stream(**asked) as stream:
            return [event.model_dump_json() for event in stream]


def anthropic_async(url):
    async def ask():
        async with anthropic.AsyncAnthropic(base_url=url, api_key="any") as client:
            asked = {"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": HELLO}
            async with client.messages.stream(**asked) as stream:
                return [event.model_dump_json() async for event in stream]

    return asyncio.run(ask())


def openai_chat(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
        got = client.chat.completions.create(model="gpt-6", messages=HELLO)
        return got.model_dump_json()


def openai_chat_stream(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
        stream = client.chat.completions.create(model="gpt-6", messages=HELLO, stream=True)
        return [chunk.model_dump_json() for chunk in stream]


def openai_responses_async(url):
    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any") as client:
            stream = await client.responses.create(model="gpt-6", input="hello", stream=True)
            return [event.model_dump_json() async for event in stream]

    return asyncio.run(ask())


def openai_over_aiohttp(url):
    async def ask():
        http = openai.DefaultAioHttpClient()
        asked = {"model": "gpt-6", "messages": HELLO, "stream": True}
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", http_client=http) as one:
            stream = await one.chat.completions.create(**asked)
            return [chunk.model_dump_json() async for chunk in stream]

    return asyncio.run(ask())


def gemini(url):
    options = genai.types.HttpOptions(base_url=url)
    client = genai.Client(api_key="any", http_options=options)
    try:
        stream = client.models.generate_content_stream(model="gemini-3-pro", contents="hello")
        return [chunk.model_dump_json() for chunk in stream]
    finally:
        client.close()


AGENTS = {
    anthropic_plain: ("anthropic.messages", "claude-sonnet-5-5"),
    anthropic_stream: ("anthropic.messages", "claude-sonnet-5-5"),
    anthropic_async: ("anthropic.messages", "claude-sonnet-5-5"),
    openai_chat: ("openai.chat", "gpt-6"),
    openai_chat_stream: ("openai.chat", "gpt-6"),
    openai_responses_async: ("openai.responses", "gpt-6"),
    openai_over_aiohttp: ("openai.chat", "gpt-6"),
    gemini: ("gemini.generate", "gemini-3-pro"),
}


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.__name__)
def agent(request):
    return request.param


def test_an_sdk_is_recorded_once_and_answered_from_the_tape(agent, studio, redactor):
    with ScriptedLLM(SCRIPT * 2, seed=7) as llm:
        url = llm.url
        bare = agent(url)
        with studio.record() as take:
            recorded = agent(url)
        asked = len(llm.requests)
    api, model = AGENTS[agent]
    call = take.call
    assert asked == 2
    assert type(recorded) is type(bare)
    assert len(recorded) == len(bare)
    assert call.call["boundary"] == "llm"
    assert call.call["api"] == api
    assert call.call["name"] == f"{api} {model}"
    assert call.how == "returned"
    with studio.replay(take) as mode:
        assert agent(url) == recorded
    assert mode.left == []


def test_the_prompt_is_readable_on_the_tape_and_the_key_is_not(studio, redactor):
    key = "sk-ant-api03-" + "Ab1-" * 23
    with (
        ScriptedLLM(SCRIPT) as llm,
        studio.record(redactor=redactor) as take,
        anthropic.Anthropic(base_url=llm.url, api_key=key) as client,
    ):
        client.messages.create(model="claude-sonnet-5-5", max_tokens=50, messages=HELLO)
    request = take.call.call["request"]
    assert json.loads(request["body"]["text"])["messages"] == HELLO
    assert request["headers"]["anthropic-version"]
    assert "authorization" not in request["headers"]
    headers = {name.lower(): value for name, value in take.call.call["headers"]}
    assert headers["authorization"].startswith("Bearer sk-ant-api03-redacted")
    assert key not in json.dumps([event.data for event in take.events])


def test_a_retry_after_429_is_two_exchanges_with_their_own_answers(studio):
    script = [Reply(error=Failure(status=429, retry_after=0)), Reply(text="at last")]

    def ask(url):
        with openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=2) as client:
            got = client.chat.completions.create(model="gpt-6", messages=HELLO)
            return got.choices[0].message.content

    with ScriptedLLM(script) as llm, studio.record() as take:
        url = llm.url
        assert ask(url) == "at last"
    assert [call.head["status"] for call in take.calls] == [429, 200]
    first, second = (call.call["request"] for call in take.calls)
    assert first == second  # idempotency keys and retry counts are not compared
    with studio.replay(take) as mode:
        assert ask(url) == "at last"
    assert mode.left == []


def test_a_stream_cut_in_the_middle_of_an_event_raises_the_same_from_the_tape(studio):
    script = [Reply(text="one two three four", cut=Cut(after=4))]

    def ask(url):
        seen = []
        with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as client:
            asked = {"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": HELLO}
            with (
                pytest.raises(httpx2.RemoteProtocolError) as raised,
                client.messages.stream(**asked) as stream,
            ):
                seen.extend(event.type for event in stream)
        return seen, str(raised.value)

    with ScriptedLLM(script) as llm, studio.record() as take:
        url = llm.url
        recorded = ask(url)
    assert take.call.how == "cut"
    with studio.replay(take):
        assert ask(url) == recorded


def test_identical_prompts_in_parallel_are_all_served_once(studio):
    async def ask(url):
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any") as client:
            asked = [client.chat.completions.create(model="m", messages=HELLO) for _ in range(8)]
            return [got.choices[0].message.content for got in await asyncio.gather(*asked)]

    script = [Reply(text=f"answer {number}") for number in range(8)]
    with ScriptedLLM(script) as llm, studio.record() as take:
        url = llm.url
        recorded = asyncio.run(ask(url))
    lanes = [call.event.lane for call in take.calls]
    assert len(set(lanes)) == 8
    with studio.replay(take) as mode:
        assert sorted(asyncio.run(ask(url))) == sorted(recorded)
    assert mode.left == []


# The SDK's own: websockets 17 wants `legacy=True` of those who keep the connection.
@pytest.mark.filterwarnings("ignore:connect.. must be used:DeprecationWarning")
def test_the_responses_socket_is_an_llm_call_and_knows_who_asked_for_a_tool(studio):
    def ask(url):
        heard = []
        with (
            openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client,
            client.responses.connect() as connection,
        ):
            connection.response.create(model="gpt-6", input="hello")
            for event in connection:
                heard.append(event.model_dump_json())
                if event.type == "response.completed":
                    break
        return heard

    with ScriptedLLM(SCRIPT) as llm, studio.record() as take:
        url = llm.url
        recorded = ask(url)
        opened = studio.deck
        cause = opened.asked.who_asked("ls", {})
    call = take.call
    assert call.call["boundary"] == "llm"
    assert call.call["api"] == "openai.responses"
    assert cause in {call.event.seq, call.event.ref}
    assert call.how == "returned"
    with studio.replay(take):
        assert ask(url) == recorded
