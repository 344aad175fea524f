"""The routes of the viewer's pages and static files."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from playhead.views.web.api.api_responses import Problem
from playhead.views.web.viewer_files import CONTENT_SECURITY_POLICY, static_files

# All paths serve the same page, which reads its address to decide what to show.
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
    # Read once: only names in this mapping are served, and no path is built from a request.
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
