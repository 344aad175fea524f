"""The server of the twelve agents: it hands out secrets and checks what comes back."""

import base64
import gzip
import hashlib
import http.server
import json
import threading
import urllib.parse

JWT_CLAIMS = {"sub": "user-17", "exp": 1_900_000_000, "scope": "mail read"}
POLICY = {
    "expiration": "2027-01-01T00:00:00Z",
    "conditions": [{"bucket": "uploads"}, {"key": "a.txt"}],
}
PAGE = base64.b64encode(b"cursor:00000000000000042").decode()


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


SECRETS = {
    "jwt": "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "cookie": "8a7sd6f87as6df87q2w3e4r5t6z7u8i9",
    "openai": "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8" * 2,
    "anthropic": "sk-ant-api03-" + "Zy9Xw8Vu7Ts6Rq5" * 3,
    "opaque": "4f8e2a6c0b1d3957" * 2 + "4f8e2a6c",
    "in the download": "ghp_" + "a1B2c3D4e5F6" * 3,
    "in code": "tr0ub4dor&3-long",
    "in a config file": "correct-horse-9-battery",
    "signature": hashlib.sha256(b"signed").hexdigest(),
    "code": "4/0AX4XfWh-3kJf92kdLs0aQpZ7mNbVcXz1",
    "access": "ya29.a0AfH6SMBx-4kd93jfKs02mdKs93",
    "refresh": "1//0gdk39fkGs93kfKAAOslf93kfl",
    "upload": base64.b64encode(hashlib.sha256(b"upload").digest()).decode(),
}
TOKEN = f"{_part({'alg': 'HS256'})}.{_part(JWT_CLAIMS)}.{SECRETS['jwt']}"
CODE = f"""
PASSWORD = "{SECRETS["in code"]}"

def is_strong():
    return len(PASSWORD) > 12

if __name__ == "__main__":
    print("connected" if PASSWORD else "refused")
"""
DOWNLOAD = json.dumps(
    {"files": [{"name": "a", "token": SECRETS["in the download"]}], "note": "hash me"}
).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def say(self, body, status=200, **headers):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        if self.server.compresses and raw and "gzip" in self.headers.get("accept-encoding", ""):
            raw = gzip.compress(raw, mtime=0)
            headers["Content_Encoding"] = "gzip"
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def form(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return {name: one[0] for name, one in urllib.parse.parse_qs(raw.decode()).items()}, raw

    def do_GET(self):
        path, _, query = self.path.partition("?")
        home = f"http://{self.headers['host']}"
        bearer = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        key = self.headers.get("x-api-key")
        plain = {
            "/config.ini": f"[db]\nuser = app\npassword = {SECRETS['in a config file']}\n",
            "/config.env": f"DB_USER=app\nDB_PASSWORD={SECRETS['in a config file']}\n",
            "/config.yaml": f"db:\n  user: app\n  password: {SECRETS['in a config file']}\n",
            "/code": CODE,
        }
        if path in plain:
            return self.say(plain[path].encode(), Content_Type="text/plain")
        if path == "/jwt":
            return self.say({"access_token": TOKEN, "token_type": "Bearer"})
        if path == "/users/user-17" and bearer == TOKEN:
            return self.say({"name": "Ada"})
        if path == "/login":
            return self.say({}, Set_Cookie=f"sid={SECRETS['cookie']}; Path=/; HttpOnly")
        if path == "/profile" and f"sid={SECRETS['cookie']}" in (self.headers.get("cookie") or ""):
            return self.say({"plan": "team"})
        if path == "/keys":
            return self.say(
                {
                    "api_key": SECRETS["openai"],
                    "anthropic_key": SECRETS["anthropic"],
                    "client_secret": SECRETS["opaque"],
                }
            )
        if path == "/whoami" and key == SECRETS["openai"]:
            return self.say({"organisation": "acme"})
        if path == "/manifest.json":
            return self.say(DOWNLOAD, X_Checksum=hashlib.sha256(DOWNLOAD).hexdigest())
        if path == "/connect" and key == SECRETS["in a config file"]:
            return self.say({"connected": True})
        if path == "/sign":
            signed = f"X-Amz-Expires=60&X-Amz-Signature={SECRETS['signature']}"
            return self.say({"url": f"{home}/file.bin?{signed}"})
        if path == "/file.bin" and f"X-Amz-Signature={SECRETS['signature']}" in query:
            return self.say(b"contents")
        if path == "/authorize":
            code = urllib.parse.quote(SECRETS["code"], safe="")
            return self.say({}, 302, Location=f"{home}/callback?code={code}&state=s1")
        if path == "/mail" and bearer == SECRETS["access"]:
            return self.say({"unread": 3})
        if path == "/pin":
            return self.say({"pin": 471_100, "check": 471_100 % 7})
        if path == "/completion":
            tokens = [("Hel", -0.1), ("lo", -0.2), (" world", -0.3), (" again and again", -0.4)]
            said = [{"token": one, "logprob": chance, "bytes": None} for one, chance in tokens]
            return self.say({"choices": [{"logprobs": {"content": said}}]})
        if path == "/items":
            asked = urllib.parse.parse_qs(query).get("page_token", [""])[0]
            if asked == PAGE:
                return self.say({"items": [3]})
            return self.say({"items": [1, 2], "next_page_token": PAGE})
        if path == "/presign":
            fields = {
                "key": "a.txt",
                "policy": base64.b64encode(json.dumps(POLICY).encode()).decode(),
                "x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20261115/eu-central-1/s3/aws4_request",
                "x-amz-signature": SECRETS["signature"],
                "x-amz-security-token": SECRETS["upload"],
            }
            return self.say({"url": f"{home}/upload", "fields": fields})
        return self.say({"error": "refused"}, 403)

    def do_POST(self):
        form, raw = self.form()
        if self.path == "/token":
            known = {form.get("code"), form.get("refresh_token")}
            if known & {SECRETS["code"], SECRETS["refresh"]}:
                tokens = {"access_token": SECRETS["access"], "refresh_token": SECRETS["refresh"]}
                return self.say({**tokens, "expires_in": 3600})
        if self.path == "/unlock" and json.loads(raw) == {"pin": 471_100}:
            return self.say({"open": True})
        if self.path == "/upload" and SECRETS["upload"].encode() in raw:
            return self.say(b"", 204, ETag='"9b2cf5"')
        return self.say({"error": "refused"}, 403)


class Server(http.server.ThreadingHTTPServer):
    compresses = False


def start(*, compresses: bool = False) -> Server:
    server = Server(("127.0.0.1", 0), Handler)
    server.compresses = compresses
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
