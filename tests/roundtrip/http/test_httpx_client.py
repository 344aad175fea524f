"""httpx and httpx2 beyond what every client does: transports, event loops, HTTP/2, leaving."""

import asyncio
import json
import threading

import h2.config
import h2.connection
import h2.events
import httpx
import httpx2
import pytest
import starlette.applications
import starlette.responses
import starlette.routing
import starlette.testclient
import trio

from playhead.hooks.http import exchange as exchanges


@pytest.fixture(params=[httpx, httpx2], ids=lambda library: library.__name__)
def library(request):
    return request.param


def test_both_libraries_in_one_process_are_recorded(site, studio):
    with studio.record() as take:
        httpx.get(f"{site.url}/echo")
        httpx2.get(f"{site.url}/echo")
    assert [call.call["library"] for call in take.calls] == ["httpx", "httpx2"]


def test_a_custom_transport_is_recorded_above_whatever_it_does(library, studio):
    class Canned(library.BaseTransport):
        def handle_request(self, request):
            headers = [("X-Canned", "yes")]
            return library.Response(418, headers=headers, content=b"short and stout")

    def ask(transport):
        with library.Client(transport=transport) as client:
            got = client.get("http://teapot.example/")
            return got.status_code, got.content, got.headers["x-canned"]

    with studio.record() as take:
        recorded = ask(Canned())
    assert recorded == (418, b"short and stout", "yes")
    assert take.call.body == b"short and stout"
    assert take.call.how == "returned"
    with studio.replay(take):
        assert ask(None) == recorded


def test_programs_inside_the_process_are_left_alone(library, studio):
    def wsgi(environ, start_response):
        start_response("200 OK", [])
        return [b"in process"]

    async def asgi(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in process"})

    async def ask_asgi():
        transport = library.ASGITransport(asgi)
        async with library.AsyncClient(transport=transport) as client:
            return (await client.get("http://app/")).content

    def answer(request):
        return library.Response(200, content=b"in process")

    async def home(request):
        return starlette.responses.PlainTextResponse("in process")

    app = starlette.applications.Starlette(routes=[starlette.routing.Route("/", home)])
    with studio.record() as take:
        with library.Client(transport=library.WSGITransport(wsgi)) as client:
            assert client.get("http://app/").content == b"in process"
        with library.Client(transport=library.MockTransport(answer)) as client:
            assert client.get("http://app/").content == b"in process"
        with starlette.testclient.TestClient(app) as client:
            assert client.get("/").content == b"in process"
        assert asyncio.run(ask_asgi()) == b"in process"
    assert take.calls == []


def test_a_mounted_transport_is_recorded(library, site, studio):
    mounts = {"http://": library.HTTPTransport()}
    with studio.record() as take, library.Client(mounts=mounts) as client:
        assert client.get(f"{site.url}/echo").status_code == 200
    assert take.call.how == "returned"


def test_a_client_made_before_the_hook_is_recorded(library, site, studio):
    with library.Client() as client:
        client.get(f"{site.url}/echo")
        with studio.record() as take:
            client.get(f"{site.url}/echo")
        client.get(f"{site.url}/echo")
    assert len(take.calls) == 1


def test_a_read_timeout_is_raised_again(library, site, studio):
    def ask(url):
        with library.Client(timeout=0.05) as client, pytest.raises(library.ReadTimeout) as raised:
            client.get(f"{url}/hold")
        return str(raised.value)

    with studio.record() as take:
        recorded = ask(site.url)
    assert take.call.how == "raised"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


def test_a_stream_that_stalls_times_out_again(library, site, studio):
    def ask(url):
        seen = []
        with (
            # Longer than a busy machine takes for the first two pieces.
            library.Client(timeout=1) as client,
            pytest.raises(library.ReadTimeout),
            client.stream("GET", f"{url}/cut?after=2&how=stall") as got,
        ):
            seen.extend(got.iter_raw())
        return seen

    with studio.record() as take:
        recorded = ask(site.url)
    assert take.call.how == "cut"
    assert len(recorded) == 2
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


async def give_up(library, url, seen, reached):
    async with library.AsyncClient() as client, client.stream("GET", url) as got:
        async for piece in got.aiter_raw():
            seen.append(piece)
            if len(seen) == 2:
                reached.set()


async def cancelled(library, url):
    """Start reading, and cancel the reader once it has seen two pieces."""
    seen, reached = [], asyncio.Event()
    task = asyncio.create_task(give_up(library, url, seen, reached))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return seen[:2]


def test_a_cancelled_reader_has_left_and_can_leave_again(library, site, studio):
    with studio.record() as take:
        recorded = asyncio.run(cancelled(library, f"{site.url}/cut?after=2&how=stall"))
    assert take.call.how == "left"
    assert take.call.stream() == recorded
    url = site.url
    site.stop()
    with studio.replay(take):
        assert asyncio.run(cancelled(library, f"{url}/cut?after=2&how=stall")) == recorded


def test_a_call_cancelled_before_its_answer_waits_to_be_cancelled_again(library, site, studio):
    async def ask(url):
        async with library.AsyncClient() as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get(f"{url}/hold"), 0.1)

    with studio.record() as take:
        asyncio.run(ask(site.url))
    assert take.call.how == "left"
    url = site.url
    site.stop()
    with studio.replay(take):
        asyncio.run(ask(url))


def test_reading_on_where_the_agent_had_left_is_a_divergence(library, site, studio):
    def ask(url, stop):
        seen = []
        with library.Client() as client, client.stream("GET", f"{url}/endless") as got:
            for piece in got.iter_raw():
                seen.append(piece)
                if len(seen) == stop:
                    break
        return seen

    with studio.record() as take:
        ask(site.url, 2)
    with studio.replay(take), pytest.raises(Exception, match="stopped listening at this point"):
        ask(site.url, 3)


def test_trio_is_recorded_and_served_like_asyncio(library, site, studio):
    async def ask(url):
        async with library.AsyncClient() as client, client.stream("GET", url) as got:
            return [piece async for piece in got.aiter_raw()]

    url = f"{site.url}/sse?n=3&gap_ms=10"
    with studio.record() as take:
        recorded = trio.run(ask, url)
    site.stop()
    with studio.replay(take):
        assert trio.run(ask, url) == recorded


def test_a_multipart_upload_is_kept_as_it_was_sent(library, site, studio):
    def ask(url):
        with library.Client() as client:
            files = {"file": ("a.txt", b"hello", "text/plain")}
            headers = {"content-type": "multipart/form-data; boundary=fixed"}
            return client.post(f"{url}/upload", files=files, headers=headers).json()

    with studio.record() as take:
        recorded = ask(site.url)
    assert b'filename="a.txt"' in b"".join(take.call.stream("sent"))
    assert recorded["length"] == sum(map(len, take.call.stream("sent")))
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


class Http2Server(threading.Thread):
    """One connection of plain-text HTTP/2 that streams its answers in two pieces."""

    def __init__(self):
        super().__init__(daemon=True)
        self.port = 0
        self.ready = threading.Event()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        self.stopping = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        async with await asyncio.start_server(self.converse, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.stopping.wait()

    def stop(self):
        if self.is_alive():
            self.loop.call_soon_threadsafe(self.stopping.set)
            self.join()

    async def converse(self, reader, writer):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    headers = [(":status", "200"), ("content-type", "text/plain")]
                    connection.send_headers(event.stream_id, headers)
                    connection.send_data(event.stream_id, b"one,")
                    connection.send_data(event.stream_id, b"two", end_stream=True)
            writer.write(connection.data_to_send())
        writer.close()


@pytest.fixture
def http2():
    server = Http2Server()
    server.start()
    server.ready.wait()
    yield server
    server.stop()


def test_http2_is_kept_as_http2(library, http2, studio):
    def ask():
        with library.Client(http1=False, http2=True) as client:
            got = client.post(f"http://127.0.0.1:{http2.port}/x", json={"a": 1})
            return got.http_version, got.status_code, got.headers.raw, got.content

    bare = ask()
    with studio.record() as take:
        recorded = ask()
    assert recorded == bare
    assert recorded[0] == "HTTP/2"
    assert take.call.head["http_version"] == "HTTP/2"
    assert take.call.stream() == [b"one,", b"two"]
    http2.stop()
    with studio.replay(take):
        assert ask() == recorded


def test_what_breaks_in_the_recorder_never_reaches_the_program(library, site, studio, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the recorder is broken")

    with monkeypatch.context() as patch:
        patch.setattr(exchanges, "describe", broken)
        with studio.record(warns=True) as take, library.Client() as client:
            assert client.get(f"{site.url}/echo").status_code == 200
    assert take.calls == []
    for name in ("head", "chunk", "whole", "end"):
        monkeypatch.setattr(f"playhead.recording.deck.Crossing.{name}", broken)
    with studio.record(warns=True), library.Client() as client:
        got = client.post(f"{site.url}/echo", json={"a": 1})
        assert json.loads(got.json()["body"]) == {"a": 1}
