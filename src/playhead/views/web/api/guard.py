"""Admission of requests: Host, Origin, token, sizes; and the audit log. Knows headers; does not know the operations.

A hostile web page can make a browser send requests to 127.0.0.1 (DNS rebinding, CSRF). It cannot make the browser
send our name as Host, or hide the page's own Origin.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playhead.errors import StoreError
from playhead.views.web.access_tokens import Access, AccessTokens, AuditLog
from playhead.views.web.api.api_responses import Problem

_log = logging.getLogger(__name__)
COOKIE = "playhead_token"
# The member of a request's scope that has the access of the client.
ACCESS = "playhead.access"
# The person who started the server; and everyone on this machine, if the server runs without a token.
OWNER = Access(name="owner", role="admin")
ANYONE = Access(name="anyone on this machine", role="admin")
LARGEST_BODY = 64 * 1024
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
# For monitoring programs, which have no token; the answer reveals nothing.
_OPEN_TO_ALL = "/healthz"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOTHING_AT_ALL = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """`hosts` are names under which the server may be called. With `any_address`, IP addresses need no entry,
    because only names can be made to point elsewhere.
    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    # The token of the person who started the server; None: no token is required.
    token: str | None = None
    # Tokens of other people, with their roles.
    tokens: AccessTokens | None = None
    audit: AuditLog | None = None
    # The path below which a reverse proxy shows this server.
    root_path: str = ""


class RequestGuard:
    """Checks every request before it reaches the application."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["path"] = self._own_path(scope["path"])
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(scope, headers)
            if scope["path"] != _OPEN_TO_ALL:
                given = self._token_in_address(scope)
                if given is not None:
                    await self._let_in(scope, headers, *given)(scope, receive, _guarded(send))
                    return
                scope[ACCESS] = self._check_token(scope, headers)
            _check_length(headers)
        except Problem as problem:
            await problem.response()(scope, receive, _guarded(send))
            return
        await self._answer(scope, receive, _guarded(send))

    def _own_path(self, path: str) -> str:
        """Remove the root path. Some proxies have removed it already, so a path without it is valid, too."""
        root = self._rules.root_path
        return path[len(root) :] or "/" if root and f"{path}/".startswith(f"{root}/") else path

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log an unexpected error and answer without its details."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                self._note(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if begun:
                raise
            _log.exception("%s %s failed", scope["method"], scope["path"])
            broken = Problem(
                500, "The server could not answer this request.", "See its stderr for the reason."
            )
            await broken.response()(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        name = _name_of(given[0]) if len(given) == 1 else None
        if name is None or not self._is_ours(name):
            raise Problem(
                421,
                f"This server is not called {', '.join(given)[:80] or 'nothing'!r}.",
                "Use its address, or start it with --allow-host NAME.",
            )

    def _is_ours(self, name: str) -> bool:
        if name in self._rules.hosts:
            return True
        return self._rules.any_address and _is_address(name)

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse writes from other origins. The browser itself refuses reads."""
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        if origin is not None and urlsplit_host(origin) != headers["host"].lower():
            raise Problem(403, f"A page of {origin[:80]!r} may not send requests to this server.")
        writes = scope["method"] not in _READS
        if writes and site not in (None, "same-origin", "none"):
            raise Problem(403, "A page of another site may not change anything here.")

    def _note(self, scope: Scope, status: int, what: str | None = None) -> None:
        """Log changes and refusals. Reading is not logged: one page makes a dozen requests."""
        who = scope.get(ACCESS)
        is_plain_read = scope["method"] in _READS and status != 403 and what is None
        if self._rules.audit is None or who is None or is_plain_read:
            return
        client = scope.get("client")
        try:
            self._rules.audit.note(
                who,
                what or f"{scope['method']} {scope['path'][:300]}",
                status=status,
                address=client[0] if client else None,
            )
        except OSError as error:
            _log.error("The audit log cannot be written (%s).", error.strerror or error)

    def _access_of(self, given: str) -> Access | None:
        rules = self._rules
        raw = given.encode("utf-8", "replace")
        if rules.token is not None and hmac.compare_digest(raw, rules.token.encode()):
            return OWNER
        try:
            return None if rules.tokens is None else rules.tokens.access_of(given)
        except StoreError as error:
            raise Problem(503, str(error), "Ask an administrator of this server.") from None

    def _token_in_address(self, scope: Scope) -> tuple[str, Access] | None:
        """Return the token in the address that `playhead serve` prints. Once opened, a cookie replaces the token."""
        if self._rules.token is None or scope["method"] not in _READS:
            return None
        for name, value in _query_of(scope):
            access = self._access_of(value) if name == "token" else None
            if access is not None:
                return value, access
        return None

    def _let_in(
        self, scope: Scope, headers: Headers, token: str, access: Access
    ) -> RedirectResponse:
        rest = urlencode([pair for pair in _query_of(scope) if pair[0] != "token"])
        # One slash: an address with two would name another host.
        bare = scope["path"].lstrip("/\\")
        path = f"{self._rules.root_path}/{bare}"
        redirect = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        scope[ACCESS] = access
        known = [self._access_of(given) for given in _tokens(scope, headers)]
        # A share link must not sign out a person who may see all runs.
        if access.run is None or not any(one is not None and one.run is None for one in known):
            redirect.set_cookie(
                _cookie(scope),
                token,
                httponly=True,
                samesite="strict",
                path=self._rules.root_path or "/",
                secure=scope.get("scheme") == "https",
            )
            self._note(scope, 303, f"sign in at {path[:300]}")
        return redirect

    def _check_token(self, scope: Scope, headers: Headers) -> Access:
        if self._rules.token is None:
            return ANYONE
        for given in _tokens(scope, headers):
            access = self._access_of(given)
            if access is not None:
                return access
        raise Problem(
            401,
            "This server requires a token. A token may have expired or been revoked.",
            "Open the address that `playhead serve` printed, or send `Authorization: Bearer TOKEN`.",
            {"WWW-Authenticate": "Bearer"},
        )


def _cookie(scope: Scope) -> str:
    """Return the name of the cookie. Cookies ignore ports: two servers of one machine would overwrite each other's."""
    server = scope.get("server")
    return f"{COOKIE}_{server[1]}" if server else COOKIE


def _tokens(scope: Scope, headers: Headers) -> Iterator[str]:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield value.strip()
    cookie = headers.get("cookie")
    if cookie is not None:
        yield cookie_parser(cookie).get(_cookie(scope), "")


def _query_of(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _check_length(headers: Headers) -> None:
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_BODY:
        raise Problem(413, f"The body has {length[:20]} bytes; at most {LARGEST_BODY}.")


def _name_of(host: str) -> str | None:
    """Return the host of `HOST:PORT`; None: not a valid host."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018  raises if it is not a number
    except ValueError:
        return None
    plain = not parts.path and not parts.query and not parts.fragment and not parts.username
    return parts.hostname if plain else None


def urlsplit_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _guarded(send: Send) -> Send:
    """Add the headers that forbid framing, content sniffing and scripts."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Content-Security-Policy", _NOTHING_AT_ALL)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded
