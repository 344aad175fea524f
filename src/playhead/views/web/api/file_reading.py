"""Handlers for the files of a run: the changes of each step, and the text of one version."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from starlette.responses import Response

from playhead.exporters.files_json import FileLimits, files_json
from playhead.story.files.file_steps import file_steps, read_version, versions_of
from playhead.tape.reader import Tape
from playhead.tape.reading.partial_run import fetch_contents
from playhead.views.web.api.api_responses import Problem, json_bytes, json_response, raw_json
from playhead.views.web.api.schema_checks import CheckedRequest
from playhead.views.web.api.story_cache import CachedStory
from playhead.workspace.history import FileHistory, read_history
from playhead.workspace.tree_listing import FileEntry

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk

# Changes in the answer. A step with more has unpacked an archive; the steps after it must still be listed.
MOST_CHANGES = 20_000
MOST_PER_STEP = 2_000
# Changes whose lines are counted, and the content that is read for it: about a second.
MOST_COUNTS = 4_000
MOST_COUNTED = 64 * 1024 * 1024
# Content ids; see `tree_listing`. A link's id is its target, of at most 4,095 bytes.
VERSION_PATTERN = "^([0-9a-f]{64}|git:[0-9a-f]{40}|link:([0-9a-f]{2}){1,4095})$"


@dataclass(kw_only=True)
class CachedFiles:
    """The files of a cached story. `lock`: the blob pool's cache is not thread-safe."""

    history: FileHistory
    lock: Lock = field(default_factory=Lock)
    versions: dict[str, tuple[int, FileEntry]]


def files(_: Desk, asked: CheckedRequest) -> Response:
    """Return all changes by step: the same form as `playhead files RUN --json`."""
    cached: CachedStory = asked.stories["id"]
    name = "files everything" if asked.values["everything"] else "files"
    if name not in cached.made:
        found = _files_of(cached)
        limits = FileLimits(
            per_step=MOST_PER_STEP, changes=MOST_CHANGES, counts=MOST_COUNTS, bytes=MOST_COUNTED
        )
        with found.lock:
            form = files_json(
                cached.story,
                found.history,
                file_steps(cached.story, found.history),
                everything=asked.values["everything"],
                limits=limits,
            )
        cached.made[name] = json_bytes(form)
    return raw_json(cached.made[name])


def version(_: Desk, asked: CheckedRequest) -> Response:
    """Return one version of a file as text, or the reason why there is none."""
    cached: CachedStory = asked.stories["id"]
    found = _files_of(cached)
    wanted = asked.values["version"]
    if wanted not in found.versions:
        raise Problem(
            404,
            "No call of this run read or wrote such a version of a file.",
            "GET …/files lists the versions: the members `before.id` and `after.id`.",
        )
    workspace, entry = found.versions[wanted]
    with found.lock:
        read = read_version(found.history, entry, workspace)
    return json_response(
        {"id": wanted, "content": read.content, "size": read.size, "text": read.text}
    )


def _files_of(cached: CachedStory) -> CachedFiles:
    """Read the history once per cached story. Two requests at once may both read it: the last one is kept."""
    found: CachedFiles | None = cached.made.get("history")
    if found is None:
        fetch_contents(cached.path)
        history = read_history(Tape(cached.path), cached.path.parent.parent)
        versions = {name: (workspace, entry) for name, workspace, entry in versions_of(history)}
        found = cached.made["history"] = CachedFiles(history=history, versions=versions)
    return found
