"""What a mode changes in a live LLM request is what goes out, whatever client sends it."""

import asyncio
import json
import urllib.request

import aiohttp
import httpx
import pytest
import requests

import playhead
from playhead.recording import deck
from playhead.replay.modes.edits import Rewrite
from playhead.testing import Reply, ScriptedLLM

ASKED = {"model": "claude-old", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
HEADERS = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "1"}


class Rewriting:
    """Everything live, and asked of another model."""

    rewrites = True

    def answer(self, call, lane):
        return None

    def rewrite(self, call, body):
        change = Rewrite(model="claude-new-and-longer", system="Be brief. ünd kurz")
        return change.apply(call.facts["api"], body)


@pytest.fixture
def rewriting(tmp_path):
    with (
        ScriptedLLM([Reply(text="Hello.", repeat="forever")]) as llm,
        playhead.record(intercept=True, store=tmp_path) as run,
    ):
        deck.active().mode = Rewriting()
        yield llm, run


def by_httpx(url: str, body: bytes) -> bytes:
    with httpx.Client() as client:
        return client.post(url, content=body, headers=HEADERS).content


def by_async_httpx(url: str, body: bytes) -> bytes:
    async def ask() -> bytes:
        async with httpx.AsyncClient() as client:
            return (await client.post(url, content=body, headers=HEADERS)).content

    return asyncio.run(ask())


def by_urllib(url: str, body: bytes) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, body, HEADERS)) as answer:
        return answer.read()


def by_requests(url: str, body: bytes) -> bytes:
    return requests.post(url, data=body, headers=HEADERS, timeout=20).content


def by_aiohttp(url: str, body: bytes) -> bytes:
    async def ask() -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=HEADERS) as answer,
        ):
            return await answer.read()

    return asyncio.run(ask())


@pytest.mark.parametrize("send", [by_httpx, by_async_httpx, by_urllib, by_requests, by_aiohttp])
def test_the_changed_body_goes_out_whole_and_is_what_the_tape_has(rewriting, send):
    llm, run = rewriting
    answer = json.loads(send(f"{llm.url}/v1/messages", json.dumps(ASKED).encode()))
    assert answer["content"][0]["text"] == "Hello."
    (request,) = llm.requests
    assert request.json["model"] == "claude-new-and-longer"
    assert request.json["system"] == "Be brief. ünd kurz"
    assert request.headers["content-length"] == str(len(request.body))
    assert request.headers["content-type"] == "application/json"
    calls = [
        event["data"]
        for event in map(json.loads, next(run.path.glob("tape-*")).read_text().splitlines())
        if event["kind"] == "call"
    ]
    assert [one["name"] for one in calls] == ["anthropic.messages claude-new-and-longer"]
    assert json.loads(calls[0]["request"]["body"]["text"])["system"] == "Be brief. ünd kurz"


def test_a_body_that_is_made_while_it_is_sent_is_left_alone_and_that_is_said(rewriting):
    llm, run = rewriting
    body = json.dumps(ASKED).encode()
    with httpx.Client() as client:
        client.post(f"{llm.url}/v1/messages", content=iter([body]), headers=HEADERS)
    assert llm.requests[0].json["model"] == "claude-old"
    assert "a streamed body cannot be changed" in next(run.path.glob("tape-*")).read_text()
