"""http.client and urllib3 beyond what every client does: kept connections, TLS, retries, uploads."""

import http.client
import http.server
import io
import json
import ssl
import threading
import urllib.request
import xmlrpc.client
from urllib.parse import urlsplit

import pytest
import requests
import trustme
import urllib3
import urllib3.util


@pytest.fixture
def authority():
    return trustme.CA()


class Secure(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Not on the test's stderr."""


@pytest.fixture
def secure_site(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Secure)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def stop():
        if thread.is_alive():
            server.shutdown()
            server.server_close()
            thread.join()

    server.stop = stop
    yield server
    stop()


def test_each_request_of_a_kept_connection_is_an_exchange(site, studio):
    parts = urlsplit(site.url)
    with studio.record() as take:
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        for number in range(3):
            connection.request("POST", "/echo", f"number {number}")
            connection.getresponse().read()
        connection.close()
    bodies = [call.call["request"]["body"]["text"] for call in take.calls]
    assert bodies == ["number 0", "number 1", "number 2"]
    assert [call.how for call in take.calls] == ["returned"] * 3


def test_a_connection_opened_before_the_hook_is_heard(site, studio):
    parts = urlsplit(site.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    connection.request("GET", "/echo")
    connection.getresponse().read()
    socket = connection.sock
    with requests.Session() as session:
        session.get(f"{site.url}/echo")
        with studio.record() as take:
            connection.request("GET", "/echo?n=2")
            connection.getresponse().read()
            session.get(f"{site.url}/echo?n=3")
    assert connection.sock is socket
    connection.close()
    urls = [call.call["request"]["url"] for call in take.calls]
    assert urls == [f"{site.url}/echo?n=2", f"{site.url}/echo?n=3"]


def test_a_session_lives_on_after_the_replay_it_was_used_in(site, studio):
    with requests.Session() as session:
        with studio.record() as take:
            session.post(f"{site.url}/echo", data=b"x")
        with studio.replay(take):
            session.post(f"{site.url}/echo", data=b"x")
        asked = len(site.requests)
        assert session.post(f"{site.url}/echo", data=b"x").json()["body"] == "x"
        assert len(site.requests) == asked + 1


def test_tls_is_recorded_and_served_without_a_connection(secure_site, authority, studio, tmp_path):
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(bundle))
    url = f"https://localhost:{secure_site.server_port}/x"
    context = ssl.create_default_context(cafile=str(bundle))

    def ask():
        answers = [requests.post(url, data=b"secret", verify=str(bundle)).content]
        with urllib.request.urlopen(url, b"plain", context=context) as got:
            answers.append(got.read())
        return answers

    with studio.record() as take:
        assert ask() == [b"secret", b"plain"]
    assert [call.call["request"]["url"] for call in take.calls] == [url, url]
    secure_site.stop()
    with studio.replay(take):
        assert ask() == [b"secret", b"plain"]


def test_an_untrusted_certificate_is_refused_again(secure_site, studio):
    url = f"https://localhost:{secure_site.server_port}/x"

    def ask():
        with pytest.raises(requests.exceptions.SSLError) as raised:
            requests.post(url, data=b"x")
        return str(raised.value)

    with studio.record() as take:
        recorded = ask()
    assert take.call.how == "raised"
    secure_site.stop()
    with studio.replay(take):
        assert ask() == recorded


def test_urllib3_retries_are_exchanges_of_their_own(site, studio):
    def ask(url):
        retries = urllib3.util.Retry(2, status_forcelist=[503], backoff_factor=0)
        with urllib3.PoolManager(retries=retries) as pool:
            with pytest.raises(urllib3.exceptions.MaxRetryError) as raised:
                pool.request("GET", f"{url}/status/503")
            return str(raised.value)

    with studio.record() as take:
        recorded = ask(site.url)
    assert [call.head["status"] for call in take.calls] == [503] * 3
    url = site.url
    site.stop()
    with studio.replay(take) as mode:
        assert ask(url) == recorded
    assert mode.left == []


def test_a_read_timeout_is_raised_again(site, studio):
    def ask(url):
        with pytest.raises(requests.exceptions.ReadTimeout) as raised:
            requests.get(f"{url}/hold", timeout=0.05)
        return str(raised.value)

    with studio.record() as take:
        recorded = ask(site.url)
    assert take.call.how == "raised"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


def test_a_stream_that_stalls_times_out_again(site, studio):
    def ask(url):
        seen = []
        with (
            requests.get(f"{url}/cut?after=2&how=stall", stream=True, timeout=1) as got,
            pytest.raises(requests.exceptions.ConnectionError) as raised,
        ):
            seen.extend(got.iter_content(None))
        return seen, str(raised.value)

    with studio.record() as take:
        recorded = ask(site.url)
    assert take.call.how == "cut"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


UPLOADS = {
    "file": lambda: io.BytesIO(b"a file " * 1000),
    "generator": lambda: (b"piece %d " % number for number in range(5)),
    "list": lambda: [b"one", b"two"],
    "text": lambda: "naïve",
    "bytearray": lambda: bytearray(b"mutable"),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_every_kind_of_body_is_on_the_tape_as_it_was_sent(kind, site, studio):
    made = UPLOADS[kind]()
    if isinstance(made, str):
        sent = made.encode()
    elif hasattr(made, "read"):
        sent = made.read()
    else:
        sent = bytes(made) if isinstance(made, bytearray) else b"".join(made)

    def ask(url):
        chunked = kind in {"generator", "list"}
        with urllib3.PoolManager() as pool:
            got = pool.request("POST", f"{url}/upload", body=UPLOADS[kind](), chunked=chunked)
            return json.loads(got.data)

    with studio.record() as take:
        recorded = ask(site.url)
    assert recorded["length"] == len(sent)
    body = take.call.call["request"]["body"]
    kept = b"".join(take.call.stream("sent")) if "streamed" in body else body["text"].encode()
    assert kept == sent
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


def test_a_body_sent_by_hand_is_teed(site, studio):
    def ask(url):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        connection.putrequest("POST", "/upload")
        connection.putheader("Content-Length", "11")
        connection.endheaders()
        connection.send(b"hello ")
        connection.send(io.BytesIO(b"world"))
        got = json.loads(connection.getresponse().read())
        connection.close()
        return got

    with studio.record() as take:
        recorded = ask(site.url)
    assert recorded["length"] == 11
    assert take.call.call["request"]["body"] == {"streamed": True}
    assert b"".join(take.call.stream("sent")) == b"hello world"
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


def test_a_request_that_nobody_waits_for_was_left(site, studio):
    parts = urlsplit(site.url)
    with studio.record() as take:
        connection = http.client.HTTPConnection(parts.hostname, parts.port)
        connection.request("GET", "/echo")
        connection.close()
    assert take.call.how == "left"
    assert take.call.head is None


def test_an_answer_that_is_dropped_was_left(site, studio):
    with studio.record() as take:
        got = requests.get(f"{site.url}/endless", stream=True)
        next(got.iter_content(None))
        got.close()
    assert take.call.how == "left"


def test_head_and_bodiless_answers_end_where_they_end(site, studio):
    def ask(url):
        with requests.Session() as session:
            first = session.head(f"{url}/echo")
            second = session.get(f"{url}/status/204")
            third = session.get(f"{url}/status/304")
            return [(got.status_code, dict(got.headers)) for got in (first, second, third)]

    with studio.record() as take:
        recorded = ask(site.url)
    assert [call.how for call in take.calls] == ["returned"] * 3
    url = site.url
    site.stop()
    with studio.replay(take):
        assert ask(url) == recorded


def test_what_is_built_on_http_client_is_recorded(studio):
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            answer = xmlrpc.client.dumps((42,), methodresponse=True).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            """Not on the test's stderr."""

    def ask(port):
        with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}/") as proxy:
            return proxy.add(40, 2)

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with studio.record() as take:
            assert ask(server.server_port) == 42
        thread.join()
        port = server.server_port
    assert "<int>40</int>" in take.call.call["request"]["body"]["text"]
    with studio.replay(take):
        assert ask(port) == 42


def test_the_socket_under_an_answer_stays_within_reach(site, studio):
    with studio.record(), requests.get(f"{site.url}/sse?n=1", stream=True) as got:
        assert got.raw._fp.fp.raw._sock.getpeername()[1] == site.port
        assert list(got.iter_content(None))


def test_redaction_may_change_the_length_of_a_body(site, studio, redactor):
    secret = "sk-ant-api03-" + "Ab1-" * 23

    def ask(url):
        return requests.post(f"{url}/echo", data=b"x", headers={"X-Echo": secret}).json()

    with studio.record(redactor=redactor) as take:
        assert secret in json.dumps(ask(site.url))
    assert secret.encode() not in take.call.body
    url = site.url
    site.stop()
    with studio.replay(take):
        assert "redacted" in ask(url)["headers"]["x-echo"]
