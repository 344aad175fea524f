"""Whom the server answers: those who call it by its name, from its own pages, with the token."""

import pytest

RUN = "/api/recordings/20261115-071105-k3f9"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9999", "[::1]:7411", "LOCALHOST"])
def test_a_name_of_this_machine_is_answered_whatever_the_port(site, host):
    assert site.ask("/api/recordings", host=host).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost@evil", "a b", ":80"]
)
def test_a_strange_name_is_refused_so_that_rebinding_leads_nowhere(site, host):
    said = site.ask("/api/recordings", host=host)
    assert said.status == 421
    assert "not called" in said.reason
    assert site.ask("/", host=host).status == 421


def test_a_request_with_two_hosts_is_refused(site):
    answer = site.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n")
    assert answer.split()[1] in (b"400", b"421")


def test_a_page_of_another_origin_may_not_ask(site, refund):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://[", "//x"):
        assert site.ask(RUN, "DELETE", Origin=origin).status == 403
        assert site.ask(RUN, Origin=origin).status == 403
    assert refund.path.exists()


def test_a_write_from_another_site_is_refused_even_without_an_origin(site, refund):
    assert site.ask(RUN, "DELETE", Sec_Fetch_Site="cross-site").status == 403
    assert site.ask(RUN, "DELETE", Sec_Fetch_Site="same-site").status == 403
    assert refund.path.exists()


def test_our_own_page_may_ask_and_change(site, refund):
    origin = f"http://{site.home}"
    assert site.ask(RUN, Origin=origin, Sec_Fetch_Site="same-origin").status == 200
    assert site.ask(RUN, "DELETE", Origin=origin, Sec_Fetch_Site="same-origin").status == 200
    assert not refund.path.exists()


def test_no_answer_may_be_read_by_other_origins(site, refund):
    said = site.ask(RUN)
    assert not [name for name in said.headers if name.startswith("access-control")]
    assert said.headers["cross-origin-resource-policy"] == "same-origin"
    assert site.ask(RUN, "OPTIONS").status == 405


@pytest.mark.parametrize("path", ["/", "/run/x", "/api/recordings", "/healthz", "/nowhere", RUN])
def test_every_answer_forbids_frames_guesses_and_foreign_scripts(site, path):
    headers = site.ask(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy or path.startswith("/run") or path == "/"


def test_without_the_token_nothing_is_told(serve, refund):
    site = serve(token="open sesame")
    for path in ("/", "/api/recordings", RUN, "/static/app.js", "/api/openapi.json", "/api/live"):
        said = site.ask(path)
        assert said.status == 401
        assert b"refund" not in said.raw
    assert site.ask("/healthz").json == {"status": "ok"}
    assert site.ask(RUN, Authorization="Bearer wrong").status == 401
    assert site.ask(RUN, Cookie=f"playhead_token_{site.port}=wrong").status == 401
    assert site.ask(f"{RUN}?token=wrong").status == 401


def test_the_token_comes_as_a_header_or_as_the_cookie_that_its_address_sets(serve, refund):
    site = serve(token="s3cret")
    assert site.ask(RUN, Authorization="Bearer s3cret").status == 200
    opened = site.ask("/run/x?token=s3cret&at=1")
    assert (opened.status, opened.headers["location"]) == (303, "/run/x?at=1")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert site.ask(RUN, Cookie=cookie.partition(";")[0]).status == 200
    assert site.ask(RUN, Cookie="playhead_token_1=s3cret").status == 401


def test_the_address_with_the_token_leads_to_no_other_server(serve):
    site = serve(token="s3cret")
    for path in ("//evil.example/", "/\\evil.example", "//evil.example:80/x/"):
        said = site.ask(f"{path}?token=s3cret")
        assert not said.headers.get("location", "/").startswith(("//", "/\\", "http"))


def test_a_name_that_was_allowed_is_answered(serve):
    site = serve(hosts=["Tapes.Example"], any_address=True, token="t")
    for host in ("tapes.example", "10.1.2.3:80", "[fe80::1]"):
        assert site.ask("/healthz", host=host).status == 200
    assert site.ask("/healthz", host="other.example").status == 421


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e/%2e%2e/pyproject.toml",
        "/static//etc/passwd",
        "/api/recordings/..%2f..%2fetc",
        "/api/recordings/..",
        "/api/recordings/%2e%2e/events",
        "/api/recordings/.hidden",
        f"{RUN}/blobs/..%2f..%2fmanifest.json",
        f"{RUN}/items/..%2f..%2fmanifest.json",
        "/api/diff?a=../x&b=../y",
    ],
)
def test_no_path_leads_out_of_the_store(site, refund, path):
    said = site.ask(path)
    assert said.status in (400, 404)
    assert b"refund-agent" not in said.raw
    assert b"root:" not in said.raw


def test_a_link_in_the_store_to_elsewhere_is_no_run(site, refund, store, tmp_path):
    (store / "runs" / "link").symlink_to(refund.path)
    assert site.ask("/api/recordings/link").status == 404
    assert site.ask("/api/recordings/link/events").status == 404


def test_a_body_that_is_too_large_is_not_read(site, refund):
    assert site.ask(RUN, "PATCH", body={"note": "x" * 100_000}).status == 413
    head = b"PATCH %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" % RUN.encode()
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    said = site.raw(head + b"Connection: close\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
    assert said.split()[1] == b"413"


def test_below_a_path_of_a_proxy_pages_redirects_and_cookies_have_that_path(serve, refund):
    """Some proxies pass the whole path and some remove their part of it: both are understood."""
    site = serve(token="s3cret", root_path="/tools/tapes")
    opened = site.ask("/tools/tapes/run/x?token=s3cret&at=1")
    assert (opened.status, opened.headers["location"]) == (303, "/tools/tapes/run/x?at=1")
    assert "Path=/tools/tapes;" in opened.headers["set-cookie"]
    key = {"Authorization": "Bearer s3cret"}
    for prefix in ("/tools/tapes", ""):
        assert site.ask(f"{prefix}{RUN}", **key).status == 200
        page = site.ask(f"{prefix}/run/x", **key).raw.decode()
        assert 'src="/tools/tapes/static/app.js"' in page
        assert '<meta name="playhead-root" content="/tools/tapes">' in page
        assert site.ask(f"{prefix}/static/address.js", **key).status == 200
    assert site.ask("/tools/tapes", **key).raw == site.ask("/", **key).raw
    assert site.ask("/tools/tapestry", **key).status == 404
    link = site.ask(f"/tools/tapes{RUN}/share", "POST", body={}, **key).json["path"]
    assert link.startswith("/tools/tapes/run/")
    described = site.ask("/tools/tapes/api/openapi.json", **key).json
    assert described["servers"] == [{"url": "/tools/tapes"}]
    for path in ("/tools/tapes//evil.example/", "//evil.example", "/tools/tapes/\\evil.example"):
        said = site.ask(f"{path}?token=s3cret")
        assert said.headers["location"].startswith("/tools/tapes/evil")
