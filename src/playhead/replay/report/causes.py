"""Put the causes of a divergence before their consequences. Pure; knows divergences as JSON.

A replay usually parts from its tape once, and everything else follows from that: a program that crashed exits with
another code and makes no more calls. So the first line of a report names the cause, and calls that were not made
because of it come last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from playhead.encoding.jsonbytes import canonical
from playhead.redact.forms import PLACEHOLDER, secrets_in_place
from playhead.replay.matching.fingerprint import normalised_text
from playhead.replay.matching.taped import TapedRun

Divergences = list[dict[str, Any]]

_placeholder = re.compile(PLACEHOLDER)
# Differences that follow from a program that took another path.
_RESULTS = ("output", "state", "files")
# The member of a divergence that names its cause, for views: see `caused`.
WHY = "cause"


def by_cause(found: Sequence[Mapping[str, Any]]) -> Divergences:
    """Return the divergences, causes first. Repeated requests are merged."""
    merged = [_explained(one) for one in _retries_merged(found)]
    results = [one for one in merged if one.get("kind") in _RESULTS]
    exits = [one for one in merged if one.get("kind") == "exit"]
    unused = [one for one in merged if one.get("kind") == "unused"]
    others = [one for one in merged if not any(one is known for known in results + exits + unused)]
    if others or exits:
        for one in unused:
            one["consequence"] = True
        return others + exits + results + unused
    return unused + results


def redaction_note(recording: TapedRun, found: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a note for a replay whose results differ: the program may compute with a value that is redacted on the
    tape.
    """
    if recording.tape.secrets or not any(one.get("kind") in (*_RESULTS, "exit") for one in found):
        return None
    if any(WHY in one for one in found):
        return None
    for call in recording.calls:
        answers = [*call.chunks, *([] if call.outcome is None else [call.outcome])]
        for event in answers:
            data = recording.tape.whole(event).data if call.spilled else event.data
            text = json.dumps(data, ensure_ascii=False)
            if "redacted" in text and secrets_in_place(text):
                return (
                    f"Redaction may be the cause: step {call.number} ({call.name}) has placeholders in place of "
                    "secrets. `playhead record --vault` keeps secrets for replays."
                )
    return None


def error_text(error: Any) -> str | None:
    """Return the exception that ended a process, in the form of the last line of Python's traceback."""
    if not isinstance(error, dict) or "$exception" not in error:
        return None
    name = str(error["$exception"]).replace("builtins:", "").replace(":", ".")
    message = str(error.get("message") or "").strip().partition("\n")[0]
    return f"{name}: {message}" if message else name


def _retries_merged(found: Sequence[Mapping[str, Any]]) -> Divergences:
    """Merge repeated requests of the program into one divergence, with the number of attempts."""
    merged: Divergences = []
    by_request: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in found:
        made = dict(one)
        if made.get("kind") != "missed":
            merged.append(made)
            continue
        key = (made.get("boundary"), made.get("name"), _settled(made.get("request")))
        first = by_request.get(key)
        if first is None:
            by_request[key] = made
            merged.append(made)
        else:
            first["times"] = int(first.get("times", 1)) + 1
    return merged


def _settled(request: Any) -> str:
    try:
        return normalised_text(request)
    except (TypeError, ValueError, RecursionError):
        return canonical(repr(request)).decode()


def _explained(one: dict[str, Any]) -> dict[str, Any]:
    """Name the cause of a call without a taped answer, where it can be seen from the call itself."""
    if one.get("kind") != "missed":
        return one
    if one.get("boundary") == "input":
        one[WHY] = f"The program reads more from {one.get('name')} than the tape has."
    elif (path := _redacted_difference(one.get("nearest"))) is not None:
        one[WHY] = (
            f"{path} was redacted on the tape, and the program now sends another value in its place."
        )
    return one


def _redacted_difference(near: Any) -> str | None:
    """Return the path of the first difference, if only a redacted value differs there."""
    found = near.get("differences") if isinstance(near, dict) else None
    if not found or not isinstance(found[0], dict):
        return None
    taped, asked = str(found[0].get("taped")), str(found[0].get("asked"))
    before, after = _placeholder.search(taped), _placeholder.search(asked)
    is_other = before is not None and (after is None or before.group() != after.group())
    return str(found[0].get("path")) if is_other else None
