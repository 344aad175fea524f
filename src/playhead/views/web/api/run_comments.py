"""Handlers for the comments of people on a run. The name of the token is the name of the author."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from playhead.library import annotate as marking
from playhead.library.run_rows import comments_of
from playhead.tape.manifest import read_manifest
from playhead.views.web.api.api_responses import Problem, json_response
from playhead.views.web.api.schema_checks import CheckedRequest

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk


def comments(desk: Desk, asked: CheckedRequest) -> Response:
    path = desk.stories.path(asked.values["id"])
    return json_response(
        {
            "comments": comments_of(read_manifest(path)),
            "me": asked.who.name,
            "may_comment": asked.who.may("annotate") and asked.who.run is None,
            "may_remove_all": asked.who.may("admin") and asked.who.run is None,
        }
    )


def add(desk: Desk, asked: CheckedRequest) -> Response:
    path = desk.stories.path(asked.values["id"])
    marking.comment(path, asked.body["text"], by=asked.who.name)
    desk.stories.send_marks(path)
    return comments(desk, asked)


def remove(desk: Desk, asked: CheckedRequest) -> Response:
    path = desk.stories.path(asked.values["id"])
    wanted = asked.values["comment"]
    there = {one["id"]: one for one in comments_of(read_manifest(path))}
    if wanted not in there:
        raise Problem(404, f"{path.name} has no comment {wanted[:80]!r}.")
    if there[wanted]["by"] != asked.who.name and not asked.who.may("admin"):
        by = there[wanted]["by"][:80]
        raise Problem(403, f"The comment is by {by}.", "Ask them, or an admin, to remove it.")
    marking.remove_comment(path, wanted)
    desk.stories.send_marks(path)
    return comments(desk, asked)
