"""Transfers of libcurl are HTTP calls: recorded with their bodies, and served without the server."""

import gzip
import http.server
import json
import sys
import threading

import pytest

PYCURL = """
import io, sys, pycurl
base = sys.argv[1]
buffer, curl = io.BytesIO(), pycurl.Curl()
curl.setopt(curl.URL, base + "/a")
curl.setopt(curl.WRITEDATA, buffer)
curl.setopt(curl.ACCEPT_ENCODING, "")
curl.perform()
print(buffer.getvalue(), curl.getinfo(curl.RESPONSE_CODE), curl.getinfo(curl.TOTAL_TIME))
heads, pieces = [], []
curl.reset()
curl.setopt(curl.URL, base + "/redirect")
curl.setopt(curl.FOLLOWLOCATION, True)
curl.setopt(curl.WRITEFUNCTION, pieces.append)
curl.setopt(curl.HEADERFUNCTION, heads.append)
curl.perform()
print(heads, b"".join(pieces), curl.getinfo(curl.EFFECTIVE_URL), curl.getinfo(curl.REDIRECT_COUNT))
curl.setopt(curl.POSTFIELDS, "word=one")
curl.setopt(curl.URL, base + "/post")
curl.perform()
print(pieces[-1])
try:
    curl.setopt(curl.URL, "http://127.0.0.1:1/")
    curl.perform()
except pycurl.error as error:
    print(error.args)
"""
CFFI = """
import asyncio, sys
from curl_cffi import requests
base = sys.argv[1]
with requests.Session(impersonate="chrome") as session:
    answer = session.post(base + "/post", data="word=one")
    print(answer.status_code, answer.json(), answer.headers["content-encoding"])
    print(session.get(base + "/redirect").url)
    with session.stream("GET", base + "/pieces") as answer:
        print(list(answer.iter_lines()))
    try:
        session.get("http://127.0.0.1:1/")
    except requests.exceptions.RequestException as error:
        print(type(error).__name__, error)
async def main():
    async with requests.AsyncSession() as session:
        async def one(number):
            print((await session.get(f"{base}/{number}")).json()["path"])
        await asyncio.gather(*[one(number) for number in range(4)])
        answer = await session.get(base + "/pieces", stream=True)
        print([line async for line in answer.aiter_lines()])
asyncio.run(main())
"""


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append(self.path)
        if self.path == "/redirect":
            self.answer(302, b"", ("Location", "/target"))
        elif self.path == "/pieces":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (b"one\n", b"two\n", b""):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            told = {"path": self.path, "got": body.decode(), "number": len(self.server.seen)}
            raw = json.dumps(told).encode()
            if "gzip" in self.headers.get("accept-encoding", ""):
                self.answer(200, gzip.compress(raw), ("Content-Encoding", "gzip"))
            else:
                self.answer(200, raw, ("Vary", "accept-encoding"))

    do_POST = do_GET  # noqa: N815  the name that http.server looks for

    def answer(self, status, body, header):
        self.send_response(status)
        self.send_header(*header)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Quiet."""


@pytest.fixture
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.seen = []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("program", [PYCURL, CFFI], ids=["pycurl", "curl_cffi"])
def test_transfers_come_back_without_the_server(play, site, program):
    taken = play.record(program, site.url)
    count = len(site.seen)
    play.assert_identical(taken)
    play.edit("word=one", "word=changed")
    again = play.replay("--in-place")
    assert again.returncode == 3
    assert "changed" in again.stderr.partition("2. ")[0]  # the cause comes first
    assert len(site.seen) == count >= 4


def test_transfers_that_are_not_recorded_make_a_hole(play, site):
    program = (
        "import pycurl, sys\n"
        "multi, curl = pycurl.CurlMulti(), pycurl.Curl()\n"
        "curl.setopt(curl.URL, sys.argv[1])\n"
        "multi.add_handle(curl)\n"
    )
    play.record(program, site.url)
    assert "pycurl.CurlMulti" in play.run("events", "last").stdout
    again = play.replay()
    assert again.returncode == 3
    assert "its transfers are not recorded" in again.stderr


def test_a_websocket_of_curl_cffi_makes_the_run_partial(play, site):
    program = (
        "import sys\n"
        "from curl_cffi import CurlError, WebSocket\n"
        "try:\n"
        "    WebSocket().connect(sys.argv[1].replace('http', 'ws'))\n"
        "except CurlError:\n"
        "    print('refused')\n"
    )
    (play.folder / "agent.py").write_text(program)
    taken = play.run("record", "--", sys.executable, "agent.py", site.url)
    assert "partial: connections were not recorded" in taken.stderr
    assert "a WebSocket of curl_cffi" in play.run("events", "last").stdout
    assert play.replay().returncode == 4
