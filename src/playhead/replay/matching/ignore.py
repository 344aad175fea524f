"""The user's ignore rules: what in a request does not count. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from playhead.errors import ConfigError
from playhead.events import BOUNDARIES
from playhead.host import later
from playhead.replay.replay_plan import Rule

_STEP = later.pattern(r"\.?([^.\[\]]+)|\[(\d+|\*)\]")
_GONE = "‹ignored›"


def rules_from(section: Any) -> tuple[Rule, ...]:
    """Return the rules in `[replay.ignore]` of the config: `llm = ["body.metadata", "header:x-id",
    "re:run-[0-9]+"]`.
    """
    if section is None:
        return ()
    if not isinstance(section, dict):
        raise ConfigError(
            '[replay.ignore] is a table of boundaries and lists: llm = ["body.metadata"].'
        )
    rules: list[Rule] = []
    for boundary, entries in section.items():
        if boundary != "*" and boundary not in BOUNDARIES:
            known = ", ".join(BOUNDARIES)
            raise ConfigError(
                f"[replay.ignore] {boundary!r} is not a boundary; expected one of {known}, or *."
            )
        for entry in entries if isinstance(entries, list) else [entries]:
            rules += [rule_from(str(boundary), str(entry))]
    return tuple(rules)


def rule_from(boundary: str, text: str) -> Rule:
    if text.startswith("header:"):
        return Rule(boundary=boundary, header=text[len("header:") :].strip().lower())
    if text.startswith("re:"):
        try:
            re.compile(text[3:])
        except re.error as error:
            raise ConfigError(f"[replay.ignore] {text!r} is not a pattern: {error}.") from None
        return Rule(boundary=boundary, pattern=text[3:])
    return Rule(boundary=boundary, path=text.removeprefix("$."))


def trimmer(rules: Sequence[Rule]) -> Callable[[str, Any], Any] | None:
    """Return a function that removes the ignored parts from a request; None if nothing is ignored."""
    if not rules:
        return None

    def trim(boundary: str, request: Any) -> Any:
        chosen = [rule for rule in rules if rule.boundary in ("*", boundary)]
        if not chosen:
            return request
        open_body = _opened(request)
        for rule in chosen:
            if rule.path:
                open_body = _without(open_body, _steps(rule.path))
            elif rule.header:
                open_body = _without_header(open_body, rule.header)
            elif rule.pattern:
                open_body = _masked(open_body, re.compile(rule.pattern))
        return open_body

    return trim


def _opened(request: Any) -> Any:
    """Return a JSON body as structure, so that paths reach into it: `body.messages[0].content`."""
    if not isinstance(request, dict) or not isinstance(request.get("body"), dict):
        return request
    text = request["body"].get("text")
    if not isinstance(text, str):
        return request
    try:
        return {**request, "body": json.loads(text)}
    except (ValueError, RecursionError):
        return request


def _steps(path: str) -> list[str]:
    return [name or index for name, index in _STEP.findall(path)]


def _without(value: Any, steps: list[str]) -> Any:
    if not steps:
        return _GONE
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        if first == "*":
            return {name: _without(item, rest) for name, item in value.items()}
        return {
            name: _without(item, rest) if name == first else item for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            _without(item, rest)
            if first == "*" or (first.isdigit() and int(first) == index)
            else item
            for index, item in enumerate(value)
        ]
    return value


def _without_header(request: Any, name: str) -> Any:
    headers = request.get("headers") if isinstance(request, dict) else None
    if isinstance(headers, dict):
        return {**request, "headers": {k: v for k, v in headers.items() if k.lower() != name}}
    if isinstance(headers, list):
        kept = [
            pair
            for pair in headers
            if not (isinstance(pair, list) and str(pair[0]).lower() == name)
        ]
        return {**request, "headers": kept}
    return request


def _masked(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(_GONE, value)
    if isinstance(value, dict):
        return {name: _masked(item, pattern) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, pattern) for item in value]
    return value
