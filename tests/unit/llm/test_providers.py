import gzip

import pytest

from playhead.llm import api_of
from playhead.llm.providers import model_in, stream_in

ANTHROPIC = b'{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[]}'
ON_CLOUDS = b'{"anthropic_version":"vertex-2023-10-16","messages":[],"max_tokens":9}'
CHAT = b'{"model":"gpt-5","messages":[]}'
RESPONSES = b'{"model":"gpt-5","input":"hi"}'
GEMINI = b'{"contents":[]}'
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-x-v1%3A0/"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/"


@pytest.mark.parametrize(
    ("url", "body", "api"),
    [
        ("https://api.anthropic.com/v1/messages", ANTHROPIC, "anthropic.messages"),
        ("http://127.0.0.1:8080/v1/messages?beta=true", ANTHROPIC, "anthropic.messages"),
        ("https://x.services.ai.azure.com/anthropic/v1/messages", ANTHROPIC, "anthropic.messages"),
        (VERTEX + "anthropic/models/claude-x@1:rawPredict", ON_CLOUDS, "anthropic.messages"),
        (VERTEX + "anthropic/models/claude-x@1:streamRawPredict", ON_CLOUDS, "anthropic.messages"),
        (BEDROCK + "invoke", ON_CLOUDS, "anthropic.messages"),
        (BEDROCK + "invoke-with-response-stream", ON_CLOUDS, "anthropic.messages"),
        ("https://api.openai.com/v1/chat/completions", CHAT, "openai.chat"),
        ("http://localhost:11434/v1/chat/completions/", b" \n" + CHAT, "openai.chat"),
        ("https://openrouter.ai/api/v1/chat/completions", CHAT, "openai.chat"),
        (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-06",
            CHAT,
            "openai.chat",
        ),
        ("https://api.openai.com/v1/responses", RESPONSES, "openai.responses"),
        ("https://chatgpt.com/backend-api/codex/responses", RESPONSES, "openai.responses"),
        (
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
            GEMINI,
            "gemini.generate",
        ),
        (
            "http://localhost:1/v1beta/models/g:streamGenerateContent?alt=sse",
            GEMINI,
            "gemini.generate",
        ),
        (VERTEX + "google/models/gemini-2.5-pro:streamGenerateContent", GEMINI, "gemini.generate"),
        (
            "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse",
            b'{"model":"gemini-2.5-pro","request":{"contents":[]}}',
            "gemini.generate",
        ),
    ],
)
def test_an_llm_call_is_recognised_wherever_it_goes(url, body, api):
    assert api_of("POST", url, {}, body) == api
    assert api_of("post", url, None, body) == api


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "https://api.anthropic.com/v1/messages/count_tokens", ANTHROPIC),
        ("POST", "https://api.anthropic.com/v1/messages/batches", ANTHROPIC),
        ("POST", VERTEX + "anthropic/models/count-tokens:rawPredict", ON_CLOUDS),
        ("POST", VERTEX + "mistralai/models/mistral-large:rawPredict", CHAT),
        ("POST", BEDROCK.replace("anthropic.claude", "meta.llama") + "invoke", b'{"prompt":"x"}'),
        ("POST", BEDROCK + "converse", b'{"messages":[]}'),
        ("POST", "https://api.openai.com/v1/embeddings", RESPONSES),
        ("POST", "https://api.openai.com/v1/completions", b'{"model":"m","prompt":"x"}'),
        ("POST", "https://api.openai.com/v1/responses/input_tokens", RESPONSES),
        ("POST", "https://api.openai.com/v1/responses/resp_1/cancel", b""),
        ("GET", "https://api.openai.com/v1/responses/resp_1", None),
        ("GET", "https://api.openai.com/v1/models", None),
        ("GET", "https://api.openai.com/v1/chat/completions", None),
        ("HEAD", "https://api.anthropic.com/api/hello", None),
        ("POST", "https://g.com/v1beta/models/gemini-2.5-flash:countTokens", GEMINI),
        ("POST", "https://g.com/v1beta/models/text-embedding:embedContent", GEMINI),
        ("POST", "https://forum.example/survey/7/responses", b'{"input":"my answer"}'),
        ("POST", "https://chat.example/channels/1/messages", b'{"messages":["hi"],"model":"x"}'),
        ("POST", "https://sms.example/v1/messages", b"to=1&text=hi"),
        ("POST", "https://api.example/chat/completions", b"not json"),
        ("POST", "https://api.example/search", CHAT),
        ("POST", "", b""),
        ("", "////", None),
    ],
)
def test_what_is_no_llm_exchange_is_left_alone(method, url, body):
    assert api_of(method, url, {"content-type": "application/json"}, body) is None


def test_a_body_that_is_still_to_come_leaves_the_decision_to_the_address():
    def api(url, headers=None):
        return api_of("POST", url, headers, None)

    assert api("https://x/v1/chat/completions") == "openai.chat"
    assert api("https://x/v1/responses") == "openai.responses"
    assert api("https://x/v1beta/models/g:generateContent") == "gemini.generate"
    assert api("https://x/v1/messages", {"Anthropic-Version": "2023-06-01"}) == "anthropic.messages"
    assert api(BEDROCK + "invoke") == "anthropic.messages"
    assert api("https://x/v1/messages") is None
    assert api("https://x/survey/responses") is None


def test_a_compressed_question_is_recognised():
    headers = [("Content-Encoding", "gzip")]
    url = "https://x/v1/chat/completions"
    assert api_of("POST", url, headers, gzip.compress(CHAT)) == "openai.chat"
    assert api_of("POST", url, headers, gzip.compress(b'{"other":1}')) is None


def test_a_question_in_an_encoding_that_cannot_be_undone_is_taken_by_its_address():
    headers = {"content-encoding": "x-own"}
    assert api_of("POST", "https://x/v1/responses", headers, b"\x00\x01") == "openai.responses"


def test_the_upgrade_to_a_websocket_opens_the_responses_api():
    upgrade = {"Upgrade": "WebSocket", "Connection": "Upgrade"}
    url = "https://api.openai.com/v1/responses"
    assert api_of("GET", url, upgrade, None) == "openai.responses"
    assert api_of("GET", "wss://api.openai.com/v1/responses", None, None) == "openai.responses"
    assert api_of("GET", url, {}, None) is None
    assert api_of("GET", "wss://x/v1/chat/completions", upgrade, None) is None


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("https://g/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"),
        (VERTEX + "anthropic/models/claude-x@1:rawPredict", "claude-x@1"),
        (BEDROCK + "invoke", "us.anthropic.claude-x-v1:0"),
        ("https://x/openai/deployments/my%20gpt/chat/completions?api-version=1", "my gpt"),
        ("https://api.openai.com/v1/chat/completions", None),
        ("https://cloudcode-pa.googleapis.com/v1internal:generateContent", None),
        ("https://x/models", None),
    ],
)
def test_the_model_is_read_from_addresses_that_name_it(url, model):
    assert model_in(url) == model


def test_streaming_is_read_from_addresses_that_say_it():
    assert stream_in("https://g/models/g:streamGenerateContent?alt=sse") is True
    assert stream_in("https://g/models/g:generateContent") is False
    assert stream_in(BEDROCK + "invoke-with-response-stream") is True
    assert stream_in("https://api.openai.com/v1/chat/completions") is None
