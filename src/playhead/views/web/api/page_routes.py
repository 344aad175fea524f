"""The pages of the viewer. Knows their addresses; what they are made of is `views.web`."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from playhead.views.web.api.api_responses import Problem
from playhead.views.web.viewer_files import CONTENT_SECURITY_POLICY, static_files

# Each is the same page: what it shows it reads from its own address.
_PAGES = (
    "/",
    "/run/{id}",
    "/run/{id}/{ref:path}",
    "/compare",
    "/compare/{a}/{b}",
    "/report/{id}",
    "/batch",
)


def routes() -> list[Route]:
    # Read once: names come from this mapping alone, and no path is ever made of what was asked.
    files = static_files()
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
