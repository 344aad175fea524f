"""`playhead serve --root-path` behind nginx: pages and API work, and client addresses come from the proxy alone."""

import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from playwright.sync_api import sync_playwright

from playhead import clock

pytestmark = pytest.mark.engines
PLAYHEAD = [sys.executable, "-m", "playhead"]
CHROMIUM = os.environ.get("PLAYHEAD_CHROMIUM", "/usr/bin/chromium")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
# The proxy speaks to Playhead from an address of its own, so that it can be told apart from other local clients.
PROXY = "127.0.0.2"
CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location /team/tapes/ {{
      proxy_pass http://127.0.0.1:{inner}{rest};
      proxy_bind {proxy};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto https;
    }}
  }}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    words = ["record", "--quiet", "--run-id", "shown", "--name", "the parcel agent"]
    words += ["--no-workspace", "--store", str(folder / "store"), "--", sys.executable, "-c", ""]
    subprocess.run([*PLAYHEAD, *words], check=True)
    return folder / "store"


@contextmanager
def site(home, folder, rest):
    """Playhead behind nginx. `rest`: what nginx adds to the address; a slash makes it remove its own path."""
    port = free_port()
    serve = ["serve", "--json", "--port", "0", "--token", "s3cret-token", "--store", str(home)]
    serve += ["--root-path", "/team/tapes", "--trust-proxy", PROXY]
    with subprocess.Popen([*PLAYHEAD, *serve], stdout=subprocess.PIPE, text=True) as server:
        try:
            inner = int(json.loads(server.stdout.readline())["url"].split(":")[2].split("/")[0])
            config = CONFIG.format(folder=folder, port=port, inner=inner, rest=rest, proxy=PROXY)
            (folder / "nginx.conf").write_text(config)
            argv = [NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
            with subprocess.Popen(argv) as proxy:
                try:
                    _wait_for(port)
                    yield port, inner
                finally:
                    proxy.terminate()
        finally:
            server.terminate()


def _wait_for(port):
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            clock.sleep(0.05)
        else:
            return
    pytest.fail("nginx does not start")


def ask(port, path, method="GET", body=None, **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(params=["", "/"], ids=["path kept", "path removed"])
def ports(request, home, tmp_path):
    with site(home, tmp_path, request.param) as found:
        yield found


def test_the_viewer_works_below_a_path_of_nginx(ports):
    port, _ = ports
    status, headers, _ = ask(port, "/team/tapes/?token=s3cret-token")
    assert (status, headers["location"]) == (303, "/team/tapes/")
    cookie = headers["set-cookie"]
    assert "Path=/team/tapes; " in cookie
    assert "Secure" in cookie
    key = {"Cookie": cookie.partition(";")[0]}
    status, _, page = ask(port, "/team/tapes/run/shown", **key)
    assert status == 200
    for name in ("app.js", "address.js", "base.css"):
        assert ask(port, f"/team/tapes/static/{name}", **key)[0] == 200
    assert '"/team/tapes/static/app.js"' in page
    status, _, listed = ask(port, "/team/tapes/api/recordings", **key)
    assert [one["name"] for one in json.loads(listed)["runs"]] == ["the parcel agent"]
    # Playwright runs an event loop in its thread.
    with ThreadPoolExecutor(1) as thread:
        address = f"http://127.0.0.1:{port}/team/tapes/?token=s3cret-token"
        shown = thread.submit(page_of, address).result()
    assert 'href="/team/tapes/run/shown"' in shown


def page_of(address):
    """The page as a browser has it once the list is there, and the page of the run that a click opens."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page()
        page.goto(address)
        link = page.get_by_text("the parcel agent").first
        link.wait_for()
        listed = page.content()
        link.click()
        page.wait_for_url("**/run/shown**")
        page.wait_for_selector("h1")
        browser.close()
    return listed


def test_the_address_of_a_client_comes_from_the_trusted_proxy_alone(ports, home):
    port, inner = ports
    key = {"Authorization": "Bearer s3cret-token", "Content_Type": "application/json"}
    path = "/api/recordings/shown"
    change = json.dumps({"note": "read"})
    spoofed = {"X_Forwarded_For": "6.6.6.6", "X_Forwarded_Proto": "https"}
    assert ask(port, f"/team/tapes{path}", "PATCH", change, **key, **spoofed)[0] == 200
    assert ask(inner, path, "PATCH", change, **key, **spoofed)[0] == 200
    lines = [json.loads(line) for line in (home / "audit.jsonl").read_text().splitlines()]
    # nginx adds the address that it saw; what the client wrote before it does not count.
    assert [line["address"] for line in lines[-2:]] == ["127.0.0.1", "127.0.0.1"]
    _, headers, _ = ask(inner, "/?token=s3cret-token", **spoofed)
    assert "Secure" not in headers["set-cookie"]
