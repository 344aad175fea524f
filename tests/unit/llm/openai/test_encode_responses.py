"""What the real OpenAI SDK makes of the scripted server's responses, over HTTP and WebSocket."""

import asyncio
import json

import openai
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from playhead.testing import Cut, Failure, Reply, ScriptedLLM, ToolCall, Usage, When

ASK = {"model": "gpt-x", "input": "Hi"}
PATCH = {"type": "custom", "name": "apply_patch"}
FULL = Reply(
    text="Naïve → answer.",
    thinking="Let me think.",
    tool_calls=[ToolCall(name="ls", arguments={"path": "/tmp"}, id="call_mine")],
    usage=Usage(input=10, output=20, cache_read=300, cache_write=5, reasoning=7),
)


def client_of(llm, **options):
    return openai.OpenAI(base_url=f"{llm.url}/v1", api_key="sk-x", **options)


def assert_full(response):
    reasoning, message, call = response.output
    assert reasoning.summary[0].text == "Let me think."
    assert reasoning.id.startswith("rs_")
    assert message.content[0].text == response.output_text == "Naïve → answer."
    assert (call.name, call.arguments, call.call_id) == ("ls", '{"path": "/tmp"}', "call_mine")
    assert call.id.startswith("fc_")
    assert response.status == "completed"
    assert response.id.startswith("resp_")
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (315, 20, 335)
    assert usage.input_tokens_details.cached_tokens == 300
    assert usage.output_tokens_details.reasoning_tokens == 7


def test_a_plain_response_has_reasoning_text_tools_and_usage():
    with ScriptedLLM([FULL]) as llm, client_of(llm) as client:
        assert_full(client.responses.create(**ASK))


def test_a_streamed_response_adds_up_to_the_plain_one():
    with (
        ScriptedLLM([FULL]) as llm,
        client_of(llm) as client,
        client.responses.stream(**ASK) as stream,
    ):
        assert_full(stream.get_final_response())


def test_a_stream_has_the_events_of_the_api_in_their_order():
    reply = Reply(text="abcd", tool_calls=[ToolCall(name="ls")], chunks=2)
    with ScriptedLLM([reply]) as llm, client_of(llm) as client:
        events = list(client.responses.create(**ASK, stream=True))
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added", "output_text.delta", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done", "completed"),
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[2].item.status == "in_progress"
    assert events[-1].response.output[1].arguments == "{}"


def test_an_async_client_gets_the_same():
    async def ask(llm):
        async with openai.AsyncOpenAI(base_url=f"{llm.url}/v1", api_key="x") as client:
            return await client.responses.create(**ASK)

    with ScriptedLLM([FULL]) as llm:
        assert_full(asyncio.run(ask(llm)))


def test_a_custom_tool_gets_free_text():
    reply = Reply(tool_calls=[ToolCall(name="apply_patch", arguments="*** Begin\n")])
    with ScriptedLLM([reply, reply]) as llm, client_of(llm) as client:
        (call,) = client.responses.create(**ASK, tools=[PATCH]).output
        events = list(client.responses.create(**ASK, tools=[PATCH], stream=True))
    assert (call.type, call.input) == ("custom_tool_call", "*** Begin\n")
    assert call.id.startswith("ctc_")
    assert "response.custom_tool_call_input.delta" in [event.type for event in events]


def test_reasoning_is_encrypted_when_that_is_asked_for():
    include = ["reasoning.encrypted_content"]
    with ScriptedLLM([FULL, FULL]) as llm, client_of(llm) as client:
        with_it = client.responses.create(**ASK, include=include).output[0]
        without = client.responses.create(**ASK).output[0]
    assert with_it.encrypted_content.startswith("gAAAAAB")
    assert without.encrypted_content is None


def test_a_response_that_ran_out_of_tokens_is_incomplete():
    reply = Reply(text="abc", stop_reason="max_tokens")
    with ScriptedLLM([reply, reply]) as llm, client_of(llm) as client:
        response = client.responses.create(**ASK)
        *_, last = client.responses.create(**ASK, stream=True)
    assert (response.status, response.incomplete_details.reason) == (
        *("incomplete", "max_output_tokens"),
    )
    assert last.type == "response.incomplete"


def test_a_stream_may_fail_after_it_has_begun():
    reply = Reply(text="abc", error=Failure(status=500, message="Boom.", after=2))
    with ScriptedLLM([reply]) as llm, client_of(llm) as client:
        *_, last = client.responses.create(**ASK, stream=True)
    assert (last.type, last.message, last.sequence_number) == ("error", "Boom.", 2)


def test_the_sdk_retries_and_then_succeeds():
    script = [Reply(error=Failure(status=429, retry_after=0.001)), "Now."]
    with ScriptedLLM(script) as llm, client_of(llm, max_retries=1) as client:
        assert client.responses.create(**ASK).output_text == "Now."


def test_previous_response_id_brings_back_what_was_said():
    script = [
        Reply(text="Lyon.", when=When(turn=1)),
        Reply(text="Of France.", when=When(turn=2, conversation="Which city?")),
    ]
    with ScriptedLLM(script) as llm, client_of(llm) as client:
        first = client.responses.create(model="gpt-x", input="Which city?")
        again = client.responses.create(
            model="gpt-x", input="And of what?", previous_response_id=first.id
        )
        request = llm.requests[1]
    assert again.output_text == "Of France."
    assert again.previous_response_id == first.id
    assert [message.text for message in request.messages] == [
        *("Which city?", "Lyon.", "And of what?")
    ]


# Over WebSocket


# openai 3.49 opens websockets 17 in a way that websockets calls deprecated.
@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager")
def test_the_sdk_talks_over_a_websocket_with_warm_up_and_continuation():
    with ScriptedLLM([FULL, "Second."]) as llm, client_of(llm) as client:
        with client.responses.connect() as connection:
            connection.response.create(model="gpt-x", input=[], generate=False)
            warm = until_completed(connection)
            hello = [{"role": "user", "content": "Hi"}]
            connection.response.create(
                model="gpt-x", input=hello, previous_response_id=warm.response.id
            )
            first = until_completed(connection)
            output = {"type": "function_call_output", "call_id": "call_mine", "output": "a b"}
            connection.response.create(
                model="gpt-x", input=[output], previous_response_id=first.response.id
            )
            second = until_completed(connection)
        requests = llm.requests
    assert warm.response.output == []
    assert warm.response.usage.output_tokens == 0
    assert_full(first.response)
    assert second.response.output_text == "Second."
    assert [(one.method, one.path, one.turn) for one in requests] == [
        ("WS", "/v1/responses", 1),
        ("WS", "/v1/responses", 1),
        ("WS", "/v1/responses", 2),
    ]
    assert requests[2].prompt == "a b"


def until_completed(connection):
    for event in connection:
        if event.type in ("response.completed", "error"):
            return event
    raise AssertionError("the connection closed before the response was complete")


def socket_to(llm):
    return connect(f"ws://{llm.host}:{llm.port}/v1/responses")


def create(**fields):
    return json.dumps({"type": "response.create", "model": "gpt-x", "input": "Hi", **fields})


def heard(socket, last="response.completed"):
    events = []
    while not events or events[-1]["type"] != last:
        events.append(json.loads(socket.recv(timeout=10)))
    return events


def test_the_messages_of_a_websocket_are_the_events_of_a_stream():
    with ScriptedLLM([FULL, FULL], seed=1) as llm, client_of(llm) as client:
        with socket_to(llm) as socket:
            socket.send(create())
            messages = heard(socket)
        events = list(client.responses.create(**ASK, stream=True))
    assert [one["type"] for one in messages] == [one.type for one in events]


def test_streams_of_one_websocket_are_told_apart_by_their_id():
    script = [Reply(text=f"To {name}.", when=When(contains=name)) for name in "ab"]
    with ScriptedLLM(script) as llm, socket_to(llm) as socket:
        for name in "ab":
            socket.send(create(input=name, stream_id=f"lane-{name}"))
        done = [one for _ in "ab" for one in heard(socket) if one["type"] == "response.completed"]
    said = {one["stream_id"]: one["response"]["output"][0]["content"][0]["text"] for one in done}
    assert said == {"lane-a": "To a.", "lane-b": "To b."}


def test_an_error_over_a_websocket_is_a_message_and_the_connection_stays():
    script = [Reply(error=Failure(status=429, retry_after=2)), "Now."]
    with ScriptedLLM(script) as llm, socket_to(llm) as socket:
        socket.send(create())
        (error,) = heard(socket, last="error")
        socket.send(create())
        assert heard(socket)
    assert error["status"] == 429
    assert error["error"]["code"] == "rate_limit_exceeded"
    assert error["error"]["headers"] == {"retry-after": "2"}


@pytest.mark.parametrize("message", ["{}", "no json", "[]"])
def test_a_message_that_asks_for_nothing_is_answered_with_an_error(message):
    with ScriptedLLM(["Kept."]) as llm, socket_to(llm) as socket:
        socket.send(message)
        (error,) = heard(socket, last="error")
        assert error["status"] == 400
        socket.send(create())
        assert heard(socket)


def test_a_message_that_cannot_be_read_is_answered_with_an_error():
    with ScriptedLLM(["Kept."]) as llm, socket_to(llm) as socket:
        socket.send(create(input=5))
        (error,) = heard(socket, last="error")
        assert error["status"] == 500
        socket.send(create())
        assert heard(socket)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_cut_websocket_breaks_within_a_message(how):
    reply = Reply(text="abcdef", cut=Cut(after=2, mid_event=True, how=how))
    with ScriptedLLM([reply]) as llm, socket_to(llm) as socket:
        socket.send(create())
        with pytest.raises(ConnectionClosedError):
            heard(socket)


def test_a_response_that_was_cut_cannot_be_continued():
    script = [Reply(text="Lost.", cut=Cut(after=4)), "Fresh."]
    with ScriptedLLM(script) as llm, client_of(llm, max_retries=0) as client:
        events = []
        with pytest.raises(openai.APIConnectionError):
            events.extend(client.responses.create(**ASK, stream=True))
        client.responses.create(**ASK, previous_response_id="resp_of_another_time")
        assert llm.requests[1].turn == 1


def test_a_long_message_and_a_ping_arrive():
    with ScriptedLLM(["Read."]) as llm, socket_to(llm) as socket:
        assert socket.ping().wait(10)
        long = "word " * 40_000
        socket.send(create(input=long))
        assert heard(socket)[-1]["response"]["usage"]["input_tokens"] > 40_000
        assert llm.requests[0].prompt == long
