"""Forms are compared by their fields: the boundary does not count, a changed field is found, files count by content."""

import asyncio
import io

import aiohttp
import httpx
import httpx2
import pytest
import requests
import requests_toolbelt

from playhead.errors import Divergence

AUDIO = bytes(range(256)) * 40


def of_httpx(library):
    def ask(url, prompt, audio):
        files = {"file": ("a.wav", io.BytesIO(audio), "audio/wav")}
        return library.post(url, data={"prompt": prompt}, files=files).json()["length"]

    return ask


def with_requests(url, prompt, audio):
    return requests.post(url, data={"prompt": prompt}, files={"file": ("a.wav", audio)}).status_code


def with_toolbelt(url, prompt, audio):
    body = requests_toolbelt.MultipartEncoder(
        {"prompt": prompt, "file": ("a.wav", io.BytesIO(audio), "audio/wav")}
    )
    headers = {"content-type": body.content_type}
    return requests.post(url, data=body, headers=headers).status_code


def with_aiohttp(url, prompt, audio):
    async def send():
        form = aiohttp.FormData()
        form.add_field("prompt", prompt)
        form.add_field("file", io.BytesIO(audio), filename="a.wav")
        async with aiohttp.ClientSession() as session, session.post(url, data=form) as got:
            return got.status

    return asyncio.run(send())


CLIENTS = {
    "httpx": of_httpx(httpx),
    "httpx2": of_httpx(httpx2),
    "requests": with_requests,
    "requests-toolbelt": with_toolbelt,
    "aiohttp": with_aiohttp,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_form_is_compared_by_its_fields(client, site, studio):
    ask = CLIENTS[client]
    url = f"{site.url}/upload"
    with studio.record() as take:
        recorded = ask(url, "say words", AUDIO)
    site.stop()
    with studio.serve(take):
        assert ask(url, "say words", AUDIO) == recorded
    with studio.serve(take), pytest.raises(Divergence) as prompt:
        ask(url, "say other words", AUDIO)
    assert "body.form.prompt differs ('say words' → 'say other words')" in str(prompt.value)
    with studio.serve(take), pytest.raises(Divergence) as content:
        ask(url, "say words", AUDIO[:-1] + b"!")
    assert "body.form.file.sha256 differs" in str(content.value)


def test_a_urlencoded_form_is_compared_by_its_fields(site, studio):
    url = f"{site.url}/upload"
    with studio.record() as take:
        requests.post(url, data={"model": "whisper-1", "words": ["one", "two"]}, timeout=9)
    site.stop()
    with studio.serve(take):
        requests.post(url, data={"words": ["one", "two"], "model": "whisper-1"}, timeout=9)
    with studio.serve(take), pytest.raises(Divergence, match=r"body\.form\.words\[1\] differs"):
        requests.post(url, data={"model": "whisper-1", "words": ["one", "2"]}, timeout=9)


def test_a_file_that_is_sent_as_the_body_is_compared_by_its_content(site, studio, tmp_path):
    url, path = f"{site.url}/upload", tmp_path / "a.bin"

    def send():
        with path.open("rb") as file:
            file.seek(10)
            return requests.put(url, data=file, timeout=9).status_code

    path.write_bytes(AUDIO)
    with studio.record() as take:
        recorded = send()
    assert b"".join(take.call.stream("sent")) == AUDIO[10:]
    site.stop()
    path.write_bytes(b"other head" + AUDIO[10:])
    with studio.serve(take):
        assert send() == recorded
    path.write_bytes(AUDIO[:-1] + b"!")
    with studio.serve(take), pytest.raises(Divergence, match="body.sha256 differs"):
        send()
