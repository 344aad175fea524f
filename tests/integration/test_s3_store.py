"""The shared store on an S3 server: moto for what works, and a small server of ours for what is refused."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.integration.s3_server import running_s3

from playhead.errors import RemoteError, UsageError
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import pull
from playhead.remote.pushing import push
from playhead.remote.remote_runs import delete_runs, remote_runs, sweep
from playhead.tape import blobs
from playhead.tape.manifest import Manifest, write_manifest


@pytest.fixture(scope="module")
def endpoint():
    with running_s3("tapes") as address:
        yield address


@pytest.fixture
def environ(endpoint, tmp_path):
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    return {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": endpoint, **keys}


def made(tmp_path, name):
    path = tmp_path / "store" / "runs" / name
    path.mkdir(parents=True)
    write_manifest(path, Manifest(run=name, name="refund", status="ok"))
    (path / "tape-1.jsonl").write_bytes(b"{}\n" * 1000)
    blobs.push(path, b"x" * 7_000_000)  # in several parts
    return path


def test_a_run_goes_up_and_comes_back_and_goes_away(environ, tmp_path):
    run = made(tmp_path, "2026-first")
    remote = ObjectFolder("s3://tapes/shop", environ)
    assert push(run, remote).is_new
    assert push(run, remote).sent == 0
    (one,), problems = remote_runs(ObjectFolder("s3://tapes/shop", environ), tmp_path)
    assert (one.id, one.manifest.name, problems) == ("2026-first", "refund", [])
    pulled = pull("2026-first", remote, tmp_path / "other")
    assert (pulled / "tape-1.jsonl").read_bytes() == (run / "tape-1.jsonl").read_bytes()
    assert len([path for path in pulled.rglob("*") if path.stat().st_size == 7_000_000]) == 1
    assert remote_runs(ObjectFolder("s3://tapes/other-team", environ), tmp_path) == ([], [])
    delete_runs(remote, ["2026-first"])
    assert sweep(remote, tmp_path, grace_ns=-(10**18))[0] == 3
    assert list(remote.list("blobs")) == []


def test_create_if_absent_has_one_winner(environ):
    remote = ObjectFolder("s3://tapes/race", environ)
    assert [remote.create("x", b"1"), remote.create("x", b"2")] == [True, False]
    assert remote.get("x", 10) == b"1"


def test_keys_and_endpoint_come_from_a_profile_too(environ, tmp_path):
    (tmp_path / ".aws").mkdir()
    credentials = "[ci]\naws_access_key_id = key\naws_secret_access_key = secret\n"
    (tmp_path / ".aws" / "credentials").write_text(credentials)
    address = environ["AWS_ENDPOINT_URL"]
    (tmp_path / ".aws" / "config").write_text(f"[profile ci]\nendpoint_url = {address}\n")
    remote = ObjectFolder("s3://tapes/shop", {"HOME": str(tmp_path), "AWS_PROFILE": "ci"})
    remote.put("profile", b"1")
    assert remote.get("profile", 10) == b"1"


def test_a_wrong_endpoint_is_named_and_an_empty_one_is_none(environ, monkeypatch):
    with pytest.raises(UsageError, match="endpoint of S3 is 'localhost:9000'"):
        ObjectFolder("s3://tapes/x", {**environ, "AWS_ENDPOINT_URL": "localhost:9000"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    # No request leaves this machine: the name of the proxy leads nowhere.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    remote = ObjectFolder("s3://tapes/x", {**environ, "AWS_ENDPOINT_URL": ""})
    with pytest.raises(RemoteError, match="cannot be reached"):
        remote.get("a", 10)


def test_a_bucket_that_is_not_there_is_named(environ):
    with pytest.raises(RemoteError, match="s3://nothing/x: there is no such bucket"):
        ObjectFolder("s3://nothing/x", environ).put("a", b"1")


@pytest.fixture
def refusing():
    """`refusing(403, "AccessDenied")`: the address of a server that gives this answer to everything."""
    servers = []

    def start(status, code):
        class Refuses(BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_PUT = do_GET = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815  the names of http.server

            def log_message(self, *_):
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "InvalidAccessKeyId", "refuses the credentials.* AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "refuses the credentials"),
        (403, "AccessDenied", "refuses the credentials, or access to a"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (400, "ExpiredToken", "the credentials have expired"),
        (404, "NoSuchBucket", "there is no such bucket"),
    ],
)
def test_a_refusal_says_the_reason_and_the_remedy(environ, refusing, status, code, said):
    remote = ObjectFolder("s3://tapes/x", {**environ, "AWS_ENDPOINT_URL": refusing(status, code)})
    with pytest.raises(RemoteError, match=said) as found:
        remote.put("a", b"1")
    assert "\n" not in str(found.value)
    if status != 404:
        with pytest.raises(RemoteError, match=said):
            remote.facts("a")


def test_a_server_that_is_not_there_is_an_error_and_no_hang(environ):
    remote = ObjectFolder("s3://tapes/x", {**environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    with pytest.raises(RemoteError, match="cannot be reached"):
        remote.get("a", 10)
