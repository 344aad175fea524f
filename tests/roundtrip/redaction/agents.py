"""Twelve agents that use a secret which the server sends them. Each prints one line: `agents.py ADDRESS [NAME…]`.

`SHAPE` in the environment says how they send: `httpx`, `requests`, `async` (httpx in an event loop) or `aiohttp`.
"""

import asyncio
import base64
import configparser
import hashlib
import http.cookiejar
import json
import os
import subprocess
import sys
import types
import urllib.parse
import urllib.request
from pathlib import Path

import aiohttp
import httpx
import requests

ADDRESS = sys.argv[1]
SHAPE = os.environ.get("SHAPE", "httpx")


def send(method, url, **options):
    """Return an answer with `json()`, `text`, `content`, `headers` and `status_code`. Redirects are not followed."""
    if SHAPE == "requests":
        return requests.request(method, url, timeout=10, allow_redirects=False, **options)
    if SHAPE == "async":
        return asyncio.run(_in_a_loop(method, url, options))
    if SHAPE == "aiohttp":
        return asyncio.run(_by_aiohttp(method, url, options))
    return httpx.request(method, url, **options)


async def _in_a_loop(method, url, options):
    async with httpx.AsyncClient() as client:
        return await client.request(method, url, **options)


async def _by_aiohttp(method, url, options):
    files = options.pop("files", None)
    if files:
        form = aiohttp.FormData(options.pop("data"))
        for field, (name, content) in files.items():
            form.add_field(field, content, filename=name)
        options["data"] = form
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, allow_redirects=False, **options) as answer,
    ):
        raw = await answer.read()
        return types.SimpleNamespace(
            content=raw, text=raw.decode(), json=lambda: json.loads(raw), headers=answer.headers,
            status_code=answer.status,
        )  # fmt: skip


def get(path, **headers):
    answer = send("GET", ADDRESS + path, headers=headers)
    if answer.status_code >= 400:
        raise ValueError(f"{path}: {answer.status_code}")
    return answer


def jwt_payload():
    token = get("/jwt").json()["access_token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    me = get(f"/users/{claims['sub']}", authorization=f"Bearer {token}").json()
    return f"{claims['sub']} until {claims['exp']}: {me['name']}"


def cookie_jar():
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    opener = urllib.request.build_opener(jar)
    with opener.open(f"{ADDRESS}/login") as answer:
        answer.read()
    with requests.Session() as session:
        session.get(f"{ADDRESS}/login")
        also = session.get(f"{ADDRESS}/profile").json()
    with opener.open(f"{ADDRESS}/profile") as answer:
        return f"{[one.name for one in jar.cookiejar]}, {json.load(answer)}, {also}"


def key_length():
    made = get("/keys").json()
    openai, anthropic, opaque = made["api_key"], made["anthropic_key"], made["client_secret"]
    assert openai.startswith("sk-proj-")
    assert len(openai) == 56, len(openai)
    assert anthropic.startswith("sk-ant-api03-")
    assert len(anthropic) == 58, len(anthropic)
    assert len(opaque) == 40, len(opaque)
    assert set(opaque) <= set("0123456789abcdef")
    return get("/whoami", **{"x-api-key": openai}).json()


def body_hash():
    answer = get("/manifest.json")
    digest = hashlib.sha256(answer.content).hexdigest()
    if digest != answer.headers["x-checksum"]:
        raise ValueError("the download is damaged")
    return digest


def code_with_password():
    code = get("/code").text
    Path("job.py").write_text(code)
    scope = {}
    exec(compile(code, "job.py", "exec"), scope)
    ran = subprocess.run(
        [sys.executable, "job.py"], capture_output=True, text=True, check=True
    ).stdout
    return f"{scope['is_strong']()} {ran.strip()}"


def config_file():
    ini = configparser.ConfigParser()
    ini.read_string(get("/config.ini").text)
    env = dict(line.split("=", 1) for line in get("/config.env").text.split())
    yaml = dict(line.strip().split(": ") for line in get("/config.yaml").text.splitlines()[1:])
    for value in (ini["db"]["password"], env["DB_PASSWORD"], yaml["password"]):
        # A parser of YAML reads a list where a value begins with a bracket.
        assert value[0] not in "[{&*!|>%@", value
    return get(f"/connect?user={yaml['user']}", **{"x-api-key": yaml["password"]}).json()


def signed_url():
    link = get("/sign").json()["url"]
    parsed = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)
    first = requests.get(link, timeout=10).text
    return f"{sorted(parsed)} {len(parsed['X-Amz-Signature'][0])} {first} {send('GET', link).text}"


def oauth_exchange():
    back = send("GET", f"{ADDRESS}/authorize?state=s1").headers["location"]
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(back).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "client_secret": "cs-4f8e2a6c0b1d"}
    tokens = send("POST", f"{ADDRESS}/token", data=form).json()
    again = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    fresh = requests.post(f"{ADDRESS}/token", data=again, timeout=10).json()
    return get("/mail", authorization=f"Bearer {fresh['access_token']}").json()


def pin():
    made = get("/pin").json()
    assert made["pin"] % 7 == made["check"], made
    return requests.post(f"{ADDRESS}/unlock", json={"pin": made["pin"]}, timeout=10).json()


def logprobs():
    said = get("/completion").json()["choices"][0]["logprobs"]["content"]
    return "".join(one["token"] for one in said) + f" {sum(one['logprob'] for one in said):.2f}"


def next_page_token():
    items, page = [], ""
    while True:
        found = get(f"/items?page_token={page}").json()
        items += found["items"]
        page = found.get("next_page_token", "")
        if not page:
            return items
        assert len(base64.b64decode(page)) == 24


def presigned_upload():
    form = get("/presign").json()
    policy = json.loads(base64.b64decode(form["fields"]["policy"]))
    done = send("POST", form["url"], data=form["fields"], files={"file": ("a.txt", b"text")})
    return f"{policy['conditions'][0]['bucket']} {done.status_code} {done.headers['etag']}"


AGENTS = (
    *(jwt_payload, cookie_jar, key_length, body_hash, code_with_password, config_file, signed_url),
    *(oauth_exchange, pin, logprobs, next_page_token, presigned_upload),
)

if __name__ == "__main__":
    for agent in AGENTS:
        if not sys.argv[2:] or agent.__name__ in sys.argv[2:]:
            try:
                said = agent()
            except Exception as error:  # noqa: BLE001  the other agents still run
                said = f"{type(error).__name__}: {error}"
            print(f"{agent.__name__}: {said}", flush=True)
