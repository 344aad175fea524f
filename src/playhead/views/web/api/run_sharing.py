"""Handlers for people: who asks, links to one run, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from playhead import clock
from playhead.views.web.access_tokens import AuditLog
from playhead.views.web.api.api_responses import json_response
from playhead.views.web.api.schema_checks import CheckedRequest

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk

WEEK_S = 7 * 86_400
LONGEST_S = 366 * 86_400


def me(_: Desk, asked: CheckedRequest) -> Response:
    who = asked.who
    return json_response({"name": who.name, "role": who.role, "run": who.run})


def share(desk: Desk, asked: CheckedRequest) -> Response:
    run = desk.stories.path(asked.values["id"]).name
    text, made = desk.tokens.make(
        f"link by {asked.who.name}"[:80],
        "read",
        expires_s=asked.body.get("expires_s", WEEK_S),
        run=run,
    )
    return json_response(
        {
            "run": run,
            "path": f"{desk.root_path}/run/{run}?token={text}",
            "token": text,
            "expires_at": clock.iso(made.expires_ns or 0),
        }
    )


def audit(desk: Desk, asked: CheckedRequest) -> Response:
    return json_response({"lines": AuditLog(desk.home).last(asked.values["limit"])})
