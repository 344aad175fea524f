"""`playhead serve` and `playhead open` as a person starts, finds and stops them."""

import json
import os
import signal
import stat
import subprocess
import sys
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from playhead.views.web.api.start import FILE, Address, is_loopback, running


@pytest.fixture
def server(store):
    """`server("serve", …)` → the process and what it said first."""
    started = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "playhead", *words, "--json", "--store", str(store)],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_server_says_where_it_is_is_found_and_leaves_nothing_behind(
    server, forge, store, playhead
):
    tape = forge()
    tape.end()
    process, said = server("serve", "--port", "0")
    assert stat.S_IMODE((store / FILE).stat().st_mode) == 0o600
    address = running(store)
    assert said["url"] == address.at("/")
    asked = Request(f"{address.url}/api/recordings")
    asked.add_header("Authorization", f"Bearer {address.token}")
    with urlopen(asked) as answer:
        assert json.load(answer)["total"] == 1
    opened = playhead("open", tape.path.name, "--no-browser", "--store", store)
    assert opened.out == f"{address.at(f'/run/{tape.path.name}')}\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert not (store / FILE).exists()
    assert running(store) is None


def test_open_starts_a_server_where_there_is_none(server, forge, store):
    tape = forge()
    tape.end()
    process, said = server("open", tape.path.name, "--no-browser", "--port", "0")
    assert said["url"] == running(store).at(f"/run/{tape.path.name}")
    browser = build_opener(HTTPCookieProcessor())
    with browser.open(said["url"]) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert not (store / FILE).exists()


def test_a_signal_that_the_kernel_gives_to_another_thread_stops_the_server(store):
    """The main thread blocks SIGTERM, so that an older thread of the process gets it."""
    program = (
        "import signal, sys, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n"
        "from playhead.cli import main\n"
        "main()\n"
    )
    words = ("serve", "--port", "0", "--json", "--store", str(store))
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            said = json.loads(process.stdout.readline())
            with build_opener(HTTPCookieProcessor()).open(said["url"]) as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert not (store / FILE).exists()


def test_another_address_is_refused_without_a_token(playhead, store):
    ended = playhead("serve", "--host", "0.0.0.0", "--port", "0", "--no-token", "--store", store)
    assert ended.code == 2
    assert "--no-token" in ended.err


def test_other_users_of_this_machine_need_the_token_unless_the_user_says_otherwise(server, store):
    """By default every route but the health check answers 401; with --no-token none does."""
    _, said = server("serve", "--port", "0")
    assert "?token=" in said["url"]
    plain = said["url"].partition("?")[0].rstrip("/")
    for path in ("/", "/api/recordings", "/api/openapi.json", "/api/recordings?token=guess1234"):
        with pytest.raises(HTTPError) as refused:
            urlopen(plain + path)
        assert refused.value.code == 401
        refused.value.close()
    with urlopen(f"{plain}/healthz") as answer:
        assert answer.status == 200
    _, said = server("serve", "--port", "0", "--no-token")
    with urlopen(f"{said['url']}api/recordings") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("token", ["", "short", "with a blank", "über-geheim"])
def test_a_token_that_cannot_be_sent_or_is_soon_guessed_is_refused(playhead, store, token):
    ended = playhead("serve", "--token", token, "--store", store)
    assert ended.code == 2
    assert "at least 8" in ended.err


def test_a_port_that_is_taken_is_said(playhead, store, server):
    _, said = server("serve", "--port", "0")
    port = urlsplit(said["url"]).port
    ended = playhead("serve", "--port", port, "--store", store)
    assert ended.code == 2
    assert f"port {port}" in ended.err


def test_a_run_of_another_place_cannot_be_opened(playhead, store, forge, tmp_path):
    tape = forge()
    tape.end()
    ended = playhead("open", tape.path, "--no-browser", "--store", tmp_path / "elsewhere")
    assert ended.code == 2
    assert "--store" in ended.err


def test_the_word_of_a_server_that_is_gone_is_not_believed(store):
    store.mkdir()
    members = {"host": "127.0.0.1", "port": 1, "pid": os.getpid(), "birth": "another"}
    (store / FILE).write_text(json.dumps(members))
    assert running(store) is None
    (store / FILE).write_text("{")
    assert running(store) is None


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_only_this_machine_is_this_machine(host, local):
    assert is_loopback(host) is local


def test_an_address_for_everybody_is_opened_here_by_its_own_name():
    assert Address(host="0.0.0.0", port=80, token="t").at("/x") == "http://127.0.0.1:80/x?token=t"
    assert Address(host="::1", port=80).at("/") == "http://[::1]:80/"


def test_the_terminal_ui_wants_a_terminal(playhead, store):
    ended = playhead("ui", "--store", store)
    assert ended.code == 2
    assert "needs a terminal" in ended.err


@pytest.mark.parametrize("path", ["tapes", "/a b", '/"><script>', "/a//b", "/%2f", "/a?b"])
def test_a_root_path_that_is_not_a_path_is_refused(playhead, store, path):
    ended = playhead("serve", "--port", "0", "--root-path", path, "--store", store)
    assert (ended.code, "--root-path" in ended.err) == (2, True)


@pytest.mark.parametrize("address", ["*", "proxy.example", "10.0.0.0/33", ""])
def test_forwarded_headers_are_trusted_from_addresses_alone(playhead, store, address):
    ended = playhead("serve", "--port", "0", "--trust-proxy", address, "--store", store)
    assert (ended.code, "--trust-proxy" in ended.err) == (2, True)
