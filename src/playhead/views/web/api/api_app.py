"""The ASGI application: all operations of the table behind the guard, and the viewer's pages and static files."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from playhead.errors import PlayheadError
from playhead.library.change_feed import BackgroundIndex, ChangeFeed
from playhead.views.web.access_tokens import Access, AccessTokens, AuditLog
from playhead.views.web.api.api_responses import Problem, json_response, problem_of
from playhead.views.web.api.event_pages import EventPages
from playhead.views.web.api.guard import (
    ACCESS,
    LARGEST_BODY,
    LOOPBACK_NAMES,
    GuardRules,
    RequestGuard,
)
from playhead.views.web.api.openapi_document import document
from playhead.views.web.api.operations import OPERATIONS, SCHEMAS
from playhead.views.web.api.replay_jobs import Replays
from playhead.views.web.api.schema_checks import (
    CheckedRequest,
    Operation,
    read_body,
    read_path,
    read_query,
)
from playhead.views.web.api.shared_runs import SharedRuns
from playhead.views.web.api.story_cache import CachedStory, SharedAnswers, StoryCache
from playhead.views.web.viewer_files import CONTENT_SECURITY_POLICY, static_files

# All paths serve the same page, which reads its address to decide what to show.
_PAGES = (
    "/",
    "/run/{id}",
    "/run/{id}/{ref:path}",
    "/compare",
    "/compare/{a}/{b}",
    "/report/{id}",
    "/stats",
    "/batch",
)


def _page_routes(root_path: str) -> list[Route]:
    # Read once: only names in this mapping are served, and no path is built from a request.
    files = static_files(root_path)
    tags = {name: f'"{hashlib.sha256(raw).hexdigest()[:32]}"' for name, (_, raw) in files.items()}

    def answer(name: str, request: Request) -> Response:
        if name not in files:
            raise Problem(404, f"There is no file {name[:80]!r} in the viewer.")
        headers = {
            "ETag": tags[name],
            "Cache-Control": "no-cache",
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        }
        if tags[name] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        media, raw = files[name]
        return Response(raw, headers=headers, media_type=media)

    async def page(request: Request) -> Response:
        return answer("index.html", request)

    async def static(request: Request) -> Response:
        return answer(request.path_params["name"], request)

    return [*(Route(path, page) for path in _PAGES), Route("/static/{name:path}", static)]


_PATIENCE_S = 60
# Lists are made by SQLite and by Python, and neither runs in parallel.
_WORKERS = 2
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(kw_only=True)
class Desk:
    """The objects that handlers share. One per application."""

    home: Path
    prices: Mapping[str, Any]
    stories: StoryCache
    pages: EventPages
    shared: SharedAnswers[Response]
    catching_up: BackgroundIndex
    pulse: ChangeFeed
    replays: Replays
    tokens: AccessTokens
    root_path: str = ""
    reports: dict[tuple[str, ...], bytes] = field(default_factory=dict)
    followers: int = 0


def app(
    home: Path,
    *,
    token: str | None = None,
    allow_replay: bool = False,
    hosts: Iterable[str] = (),
    any_address: bool = False,
    prices: Mapping[str, Any] | None = None,
    root_path: str = "",
    shared: SharedRuns | None = None,
) -> Starlette:
    """Build the application for the library in `home`.

    `token`: the token of the owner, who makes tokens for other people (see `access_tokens`); None: no token is
    required. `hosts`: names of the server beside the loopback names. `root_path`: the path of a reverse proxy below
    which browsers see this server, such as /playhead. `shared`: a shared store whose runs are shown, too.
    """
    own = dict(prices or {})
    desk = Desk(
        home=home,
        prices=own,
        stories=StoryCache(home, own, shared),
        pages=EventPages(),
        shared=SharedAnswers(_WORKERS),
        catching_up=BackgroundIndex(home, own),
        pulse=ChangeFeed(home),
        replays=Replays(home, allowed=allow_replay),
        tokens=AccessTokens(home),
        root_path=root_path,
    )
    rules = GuardRules(
        hosts=LOOPBACK_NAMES | {host.lower() for host in hosts},
        any_address=any_address,
        token=token,
        tokens=desk.tokens,
        audit=None if token is None else AuditLog(home),
        root_path=root_path,
    )
    described = document(OPERATIONS, SCHEMAS, root_path)
    routes = [
        Route("/healthz", _healthz, methods=["GET"]),
        Route("/api/openapi.json", _constant(described), methods=["GET"]),
        *_operation_routes(desk),
        *_page_routes(root_path),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(RequestGuard, rules=rules)],
        exception_handlers={
            HTTPException: _http_problem,
            Problem: _problem,
            PlayheadError: _playhead_problem,
            OSError: _file_problem,
            RecursionError: _depth_problem,
        },
    )


def _operation_routes(desk: Desk) -> list[Route]:
    """Return one route per path, so that an unsupported method is answered with 405."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [
        Route(_as_route(path), partial(_dispatch, desk, methods), methods=list(methods))
        for path, methods in by_path.items()
        if path.startswith("/api/") and path != "/api/openapi.json"
    ]


def _as_route(path: str) -> str:
    # The name of an item contains a colon, and that of a segment may contain nearly any character.
    return path.replace("{ref}", "{ref:path}")


async def _dispatch(desk: Desk, methods: Mapping[str, Operation], request: Request) -> Response:
    operation = methods["GET" if request.method == "HEAD" else request.method]
    values = read_path(operation, request.path_params)
    who: Access = request.scope[ACCESS]
    _check_access(who, operation, values)
    values |= read_query(operation, request.query_params.multi_items())
    body = read_body(operation, await _body(request), request.headers.get("content-type", ""))
    wants_stream = "text/event-stream" in request.headers.get("accept", "")
    asked = CheckedRequest(values=values, body=body, headers=request.headers, stories={}, who=who)
    if operation.stream is not None and (wants_stream or operation.handle is None):
        return await operation.stream(desk, asked)
    if operation.handle is None:
        raise Problem(406, "This is a stream.", "Send `Accept: text/event-stream`.")
    with anyio.move_on_after(operation.patience_s or _PATIENCE_S):
        stories = {name: await _story_for(desk, values, name) for name in operation.needs}
        asked = replace(asked, stories=stories)
        handle = partial(operation.handle, desk, asked)
        if operation.shared:
            return await desk.shared.get((operation.id, *sorted(values.items())), handle)
        return await anyio.to_thread.run_sync(handle, abandon_on_cancel=True)
    raise Problem(503, "This took too long.", "Request less, or try again.", {"Retry-After": "5"})


def _check_access(who: Access, operation: Operation, values: Mapping[str, Any]) -> None:
    """Check the token. 403: it does not permit this operation, or not on this run."""
    is_shared = operation.id == "me" or (operation.one_run and values.get("id") == who.run)
    if who.run is not None and not is_shared:
        raise Problem(
            403,
            "This link shows one run, and nothing else of this server.",
            f"Open /run/{who.run}, or ask for a token of your own.",
        )
    if not who.may(operation.role):
        raise Problem(
            403,
            f"The token of {who.name} has the role {who.role}; this needs {operation.role}.",
            "An administrator makes another one with `playhead token create`.",
        )


async def _story_for(desk: Desk, values: Mapping[str, Any], name: str) -> CachedStory:
    """Return the run that this parameter names, as far as the operation needs it."""
    first, ref = values.get("first"), values.get("ref")
    if first is not None:
        return await desk.stories.begun(values[name], first)
    if ref is not None:
        return await desk.stories.with_item(values[name], ref)
    return await desk.stories.story(values[name])


async def _body(request: Request) -> bytes:
    """Read a body of limited size: a client that sends no length may send forever."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > LARGEST_BODY:
                raise Problem(413, f"The body has more than {LARGEST_BODY} bytes.")
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "The body is incomplete.") from None
    return b"".join(parts)


async def _healthz(_: Request) -> Response:
    return json_response({"status": "ok"})


def _constant(value: Any) -> Endpoint:
    made = json_response(value)

    async def answer(_: Request) -> Response:
        return made

    return answer


async def _problem(_: Request, error: Exception) -> Response:
    return error.response() if isinstance(error, Problem) else Response(status_code=500)


async def _playhead_problem(_: Request, error: Exception) -> Response:
    found = problem_of(error) if isinstance(error, PlayheadError) else Problem(500, str(error))
    return found.response()


async def _file_problem(_: Request, error: Exception) -> Response:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Problem(409, f"A file of the store cannot be used: {said}.").response()


async def _depth_problem(_: Request, __: Exception) -> Response:
    return Problem(409, "This tape is nested too deeply to be shown.").response()


async def _http_problem(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    reasons = {
        404: "There is nothing at this address.",
        405: "This address does not accept this method.",
    }
    advice = "GET /api/openapi.json describes the API."
    return Problem(status, reasons.get(status, "The request failed."), advice, headers).response()
