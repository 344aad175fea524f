"""Admission of requests: Host, Origin, token, sizes. Knows headers; does not know the operations.

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

from playhead.views.web.api.api_responses import Problem

_log = logging.getLogger(__name__)
COOKIE = "playhead_token"
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
    """`hosts`: names by which the server may be called; an address as such needs no entry where
    `any_address`, since only names can be made to point elsewhere.
    """

    hosts: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    token: str | None = None


class RequestGuard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(scope, headers)
            if scope["path"] != _OPEN_TO_ALL and self._comes_with_token(scope):
                await self._let_in(scope)(scope, receive, _guarded(send))
                return
            if scope["path"] != _OPEN_TO_ALL:
                self._check_token(scope, headers)
            _check_length(headers)
        except Problem as problem:
            await problem.response()(scope, receive, _guarded(send))
            return
        await self._answer(scope, receive, _guarded(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log an unexpected error and answer without its details."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if begun:
                raise
            _log.exception("%s %s failed", scope["method"], scope["path"])
            broken = Problem(500, "The server failed at this.", "See its stderr for the reason.")
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
        """Reading across origins is refused by the browser; writing has to be refused here."""
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        if origin is not None and urlsplit_host(origin) != headers["host"].lower():
            raise Problem(403, f"A page of {origin[:80]!r} may not ask this server.")
        writes = scope["method"] not in _READS
        if writes and site not in (None, "same-origin", "none"):
            raise Problem(403, "A page of another site may not change anything here.")

    def _comes_with_token(self, scope: Scope) -> bool:
        """The address that `playhead serve` prints: once opened, a cookie takes the token's place."""
        if self._rules.token is None or scope["method"] not in _READS:
            return False
        return any(
            name == "token" and hmac.compare_digest(value.encode(), self._rules.token.encode())
            for name, value in _query_of(scope)
        )

    def _let_in(self, scope: Scope) -> RedirectResponse:
        rest = urlencode([pair for pair in _query_of(scope) if pair[0] != "token"])
        # One slash: with two it would be another host's address.
        path = "/" + scope["path"].lstrip("/\\")
        redirect = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        redirect.set_cookie(
            _cookie(scope), self._rules.token or "", httponly=True, samesite="strict", path="/"
        )
        return redirect

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        token = self._rules.token
        if token is None:
            return
        for given in _tokens(scope, headers):
            if hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
                return
        raise Problem(
            401,
            "This server wants its token.",
            "Open the address that `playhead serve` printed, or send `Authorization: Bearer TOKEN`.",
            {"WWW-Authenticate": "Bearer"},
        )


def _cookie(scope: Scope) -> str:
    """Its name. Cookies do not know ports: two servers of one machine would take each other's."""
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
    told = headers.get("content-length", "0")
    if not told.isdigit() or int(told) > LARGEST_BODY:
        raise Problem(413, f"The body has {told[:20]} bytes; at most {LARGEST_BODY}.")


def _name_of(host: str) -> str | None:
    """Return the host of `HOST:PORT`; None: not a valid host."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018  raises where it is no number
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
