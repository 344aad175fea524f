"""The scripted LLM as a server: what it keeps, what it refuses, how it starts and stops."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest

from playhead.testing import Reply, ScriptedLLM, serve

SOURCE = Path(__file__).parents[4] / "src"
ASK = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def test_requests_are_kept_as_they_came():
    with ScriptedLLM(["Hello."]) as llm:
        httpx2.post(f"{llm.url}/v1/messages?beta=true", json=ASK, headers={"X-Api-Key": "k"})
        (request,) = llm.requests
    assert (request.number, request.method, request.path) == (1, "POST", "/v1/messages")
    assert request.query == {"beta": "true"}
    assert request.headers["x-api-key"] == "k"
    assert request.json == ASK == json.loads(request.body)
    with pytest.raises(AttributeError):
        request.path = "/other"


def test_the_environment_points_the_sdks_here_with_keys_that_look_real(monkeypatch):
    with ScriptedLLM(["From Anthropic.", "From OpenAI."]) as llm:
        environ = llm.environ()
        assert environ == llm.environ()
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with anthropic.Anthropic() as client:
            assert client.messages.create(**ASK).content[0].text == "From Anthropic."
        with openai.OpenAI() as client:
            assert client.responses.create(model="x", input="Hi").output_text == "From OpenAI."
        sent = [request.headers for request in llm.requests]
    assert re.fullmatch(r"Bearer sk-ant-api03-[\w-]{93}AA", sent[0]["authorization"])
    assert re.fullmatch(r"Bearer sk-proj-[\w-]{156}", sent[1]["authorization"])
    assert re.fullmatch(r"AIzaSy[\w-]{33}", environ["GEMINI_API_KEY"])


def test_the_environment_keeps_what_else_must_not_go_through_a_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "intranet.example")
    with ScriptedLLM([]) as llm:
        assert llm.environ()["NO_PROXY"] == "intranet.example,127.0.0.1,localhost"


def test_ids_and_times_are_new_each_time_unless_there_is_a_seed():
    def answer(seed):
        with ScriptedLLM([Reply(text="x", thinking="y")], seed=seed) as llm:
            response = httpx2.post(f"{llm.url}/v1/messages", json=ASK)
            return dict(response.headers), response.json()

    assert answer(7) == answer(7)
    assert answer(7) != answer(8)
    (first_headers, first), (headers, other) = answer(None), answer(None)
    assert first["id"] != other["id"]
    assert first["content"][0]["signature"] != other["content"][0]["signature"]
    assert first_headers["request-id"] != headers["request-id"]


def test_side_traffic_of_agents_is_answered():
    with ScriptedLLM([]) as llm, httpx2.Client(base_url=llm.url) as client:
        hello = client.head("/api/hello")
        assert (hello.status_code, hello.content) == (200, b"")
        assert client.head("/").status_code == 200
        lost = client.post("/api/event_logging/batch", json={})
        assert lost.status_code == 404
        assert (
            "Nothing is served at POST /api/event_logging/batch" in lost.json()["error"]["message"]
        )
        assert client.delete("/v1/messages").status_code == 404
        assert [request.method for request in llm.requests] == ["HEAD", "HEAD", "POST", "DELETE"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"'])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
def test_a_body_that_is_no_json_object_is_refused_in_the_manner_of_the_wire(path, body):
    with ScriptedLLM(["Kept."]) as llm:
        answer = httpx2.post(llm.url + path, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "The body of the request is not a JSON object."


def test_a_route_of_ones_own_stands_beside_the_model():
    async def weather(exchange):
        await exchange.answer_json(200, {"city": exchange.request.query["city"]})

    with ScriptedLLM(["x"], routes={"/weather": weather}) as llm:
        assert httpx2.get(f"{llm.url}/weather?city=Lyon").json() == {"city": "Lyon"}
        assert llm.requests[0].path == "/weather"


def test_one_can_wait_for_requests():
    with ScriptedLLM([Reply(text="x", repeat="forever")]) as llm:
        url = f"{llm.url}/v1/messages"
        asking = [
            threading.Thread(target=httpx2.post, args=(url,), kwargs={"json": ASK})
            for _ in range(2)
        ]
        for thread in asking:
            thread.start()
        assert len(llm.wait_for_requests(2)) == 2
        for thread in asking:
            thread.join()
        with pytest.raises(TimeoutError, match="2 of 3 requests"):
            llm.wait_for_requests(3, timeout=0.01)


def test_it_serves_inside_a_running_loop_as_well():
    async def use():
        async with (
            ScriptedLLM(["Hello."]) as llm,
            anthropic.AsyncAnthropic(base_url=llm.url, api_key="x") as client,
        ):
            return (await client.messages.create(**ASK)).content[0].text

    assert asyncio.run(use()) == "Hello."


def test_stopping_ends_open_streams_and_frees_the_port():
    llm = ScriptedLLM([Reply(text="abcdef", chunks=6, chunk_delay=60)])
    llm.start()
    port = llm.port
    with httpx2.stream("POST", f"{llm.url}/v1/messages", json={**ASK, "stream": True}) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: message_start"
        llm.stop()
        with pytest.raises(httpx2.TransportError):
            list(lines)
    llm.stop()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    with pytest.raises(RuntimeError, match="not running"):
        _ = llm.url


def test_a_server_that_runs_cannot_be_started_again():
    with ScriptedLLM([]) as llm, pytest.raises(RuntimeError, match=f"running, on {llm.url}"):
        llm.start()


def test_clients_that_come_while_it_stops_leave_nothing_open():
    for _ in range(20):
        with ScriptedLLM([]) as llm:
            wires = [socket.create_connection((llm.host, llm.port)) for _ in range(3)]
        for wire in wires:
            wire.close()


def test_a_port_that_is_taken_is_an_error_at_the_start():
    with ScriptedLLM([]) as llm, pytest.raises(OSError, match=r"(?i)address already in use"):
        ScriptedLLM([], port=llm.port).start()


def test_serve_tells_when_it_is_ready_and_ends_when_it_is_stopped():
    served = []

    def ready(llm):
        served.append(httpx2.post(f"{llm.url}/v1/messages", json=ASK).json()["content"])
        threading.Thread(target=llm.stop).start()

    serve(["Hello."], ready=ready)
    assert served == [[{"type": "text", "text": "Hello."}]]


PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
import playhead.testing
from playhead.testing import Reply, ToolCall, load_script
heavy = {"asyncio", "http", "logging", "ssl", "concurrent.futures"} & set(sys.modules)
assert not heavy, heavy
assert all(hasattr(playhead.testing, name) for name in playhead.testing.__all__)
assert not hasattr(playhead.testing, "Nothing")
"""


def test_importing_the_package_brings_no_event_loop_with_it():
    argv = [sys.executable, "-I", "-W", "error", "-c", PROBE, str(SOURCE)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
