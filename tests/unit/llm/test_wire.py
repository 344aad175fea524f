import gzip
import json
import subprocess

import pytest

from playhead.llm import decode_request, decode_response, http_headers, tool_calls_of

ANTHROPIC = "anthropic.messages"
SSE = {"Content-Type": "text/event-stream; charset=utf-8"}


def test_the_content_type_is_found_in_any_case_and_in_pairs(sample):
    body = sample("anthropic_tools.sse")
    expected = decode_response(ANTHROPIC, 200, SSE, body)
    assert (
        decode_response(ANTHROPIC, 200, [(b"content-TYPE", b"text/event-stream")], body) == expected
    )


def test_an_event_stream_is_known_even_when_its_content_type_is_wrong(sample):
    body = sample("chat_tools.sse")
    expected = decode_response("openai.chat", 200, SSE, body)
    assert decode_response("openai.chat", 200, {"content-type": "text/plain"}, body) == expected
    assert decode_response("openai.chat", 200, None, body) == expected


def test_a_plain_document_is_known_even_when_it_calls_itself_a_stream(sample):
    body = sample("anthropic_message.json")
    assert decode_response(ANTHROPIC, 200, SSE, body).id == "msg_01PlainJson"


def test_gzip_is_undone(sample):
    body = sample("responses_tools.sse")
    headers = {**SSE, "content-encoding": "gzip"}
    packed = decode_response("openai.responses", 200, headers, gzip.compress(body))
    assert packed == decode_response("openai.responses", 200, SSE, body)
    calls = tool_calls_of("openai.responses", 200, headers, gzip.compress(body))
    assert calls == packed.tool_calls


def test_an_encoding_that_cannot_be_undone_is_the_error_of_the_answer(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(http_headers, "import_module", missing)
    answer = decode_response(ANTHROPIC, 200, {"content-encoding": "br"}, b"\x0b\x02")
    assert answer.error is not None
    assert answer.error.type == "undecodable"
    assert "brotli" in (answer.error.message or "")
    assert not answer.complete
    assert answer.reason == answer.error.message
    request = decode_request(ANTHROPIC, b"\x0b\x02", headers={"content-encoding": "br"})
    assert "brotli" in (request.reason or "")
    assert tool_calls_of(ANTHROPIC, 200, {"content-encoding": "br"}, b"\x0b\x02") == ()


def test_an_unknown_api_is_said_and_not_raised():
    assert decode_response("smoke.signals", 200, {}, b"{}").reason == "unknown API 'smoke.signals'"
    assert decode_request("smoke.signals", b"{}").reason == "unknown API 'smoke.signals'"
    assert tool_calls_of("smoke.signals", 200, {}, b"{}") == ()


@pytest.mark.parametrize("headers", [{}, SSE])
def test_a_proxys_error_page_is_the_message_of_the_error(headers):
    page = b"<html>\n <h1>502  Bad Gateway</h1>\n</html>"
    answer = decode_response(ANTHROPIC, 502, headers, page)
    assert answer.error is not None
    assert answer.error.status == 502
    assert answer.error.message == "<html> <h1>502 Bad Gateway</h1> </html>"


def test_an_error_without_a_body_is_an_error_all_the_same():
    answer = decode_response("gemini.generate", 503, {}, b"")
    assert answer.error is not None
    assert (answer.error.status, answer.error.message) == (503, None)


def test_an_empty_answer_is_not_complete():
    answer = decode_response("openai.chat", 200, {}, b"")
    assert not answer.complete
    assert answer.reason == "the body is empty"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5", "Retry-After-Ms": "250"}, 0.25),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30.0,
        ),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:27:00 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            0.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Xyz"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_server_is_heard_on_when_to_come_back(sample, headers, seconds):
    answer = decode_response(ANTHROPIC, 429, headers, sample("anthropic_rate_limit.json"))
    assert answer.error is not None
    assert answer.error.retry_after == seconds


def test_model_and_streaming_come_from_the_address_where_the_body_does_not_say(sample):
    url = "https://g/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    request = decode_request("gemini.generate", sample("gemini_request.json"), url=url)
    assert (request.model, request.stream) == ("gemini-2.5-flash", True)


def test_the_body_names_the_model_before_the_address_does(sample):
    url = "https://x/openai/deployments/prod/chat/completions"
    request = decode_request("openai.chat", sample("chat_request.json"), url=url)
    assert (request.model, request.stream) == ("gpt-4.1", False)
    nameless = decode_request("openai.chat", b'{"messages":[]}', url=url)
    assert nameless.model == "prod"


def test_a_compressed_request_is_read(sample):
    body = sample("chat_request.json")
    packed = decode_request(
        "openai.chat", gzip.compress(body), headers={"content-encoding": "gzip"}
    )
    assert packed == decode_request("openai.chat", body)


@pytest.mark.parametrize(
    ("api", "name"),
    [
        (ANTHROPIC, "anthropic_tools.sse"),
        (ANTHROPIC, "anthropic_message.json"),
        ("openai.chat", "chat_tools.sse"),
        ("openai.chat", "chat_completion.json"),
        ("openai.responses", "responses_tools.sse"),
        ("openai.responses", "responses_response.json"),
        ("gemini.generate", "gemini_tools.sse"),
        ("gemini.generate", "gemini_tools_array.json"),
        ("gemini.generate", "gemini_response.json"),
    ],
)
def test_the_short_way_to_the_calls_finds_the_same_calls(sample, api, name):
    calls = tool_calls_of(api, 200, {}, sample(name))
    assert calls
    assert calls == decode_response(api, 200, {}, sample(name)).tool_calls


def test_an_answer_without_calls_has_none(sample):
    assert tool_calls_of("openai.chat", 200, {}, sample("chat_refusal.sse")) == ()


def test_decoders_work_on_every_python_an_agent_may_run(guest_python, sample, tmp_path):
    """One answer a protocol, decoded by a bare interpreter that has the source and nothing else."""
    program = """
import json, sys
from playhead.llm import decode_response
found = {}
for api, path in json.load(sys.stdin):
    answer = decode_response(api, 200, {}, open(path, "rb").read())
    deep = decode_response(api, 200, {}, b'{"a":' * 100_000)
    assert not deep.complete and deep.reason
    found[api] = [answer.text, [call.arguments for call in answer.tool_calls], answer.complete]
print(json.dumps(found))
"""
    names = {
        ANTHROPIC: "anthropic_tools.sse",
        "openai.chat": "chat_tools.sse",
        "openai.responses": "responses_tools.sse",
        "gemini.generate": "gemini_tools.sse",
    }
    files = []
    for api, name in names.items():
        (tmp_path / name).write_bytes(sample(name))
        files.append((api, str(tmp_path / name)))
    source = http_headers.__file__.rpartition("/playhead/")[0]
    done = subprocess.run(
        [guest_python, "-S", "-E", "-c", f"import sys; sys.path.append({source!r})\n{program}"],
        input=json.dumps(files),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = {}
    for api, name in names.items():
        answer = decode_response(api, 200, {}, sample(name))
        arguments = [call.arguments for call in answer.tool_calls]
        expected[api] = [answer.text, arguments, answer.complete]
    assert json.loads(done.stdout) == expected
