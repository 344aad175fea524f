"""The stages of a loop, and the decision of an iteration. Pure; does not know files or processes.

No dataclasses in the modules that a step of a shell script loads: they would double its time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from playhead.errors import UsageError

Word = Literal["continue", "stop", "error"]
WORDS: tuple[Word, ...] = ("continue", "stop", "error")

_STAGE = re.compile(r"([A-Za-z0-9][\w.-]{0,63})(?::(\d{1,6}|\*))?")
# Words of other tools for the same decisions.
_SYNONYMS: dict[str, Word] = {
    "next": "continue",
    "ok": "continue",
    "go": "continue",
    "done": "stop",
    "complete": "stop",
    "completed": "stop",
    "finished": "stop",
    "failed": "error",
    "fail": "error",
}


class Stage(NamedTuple):
    """A name, and the maximum number of iterations; 0: no limit."""

    name: str
    most: int = 1


class Decision(NamedTuple):
    """The decision of an iteration about the next one. `said` has the other fields of the status file."""

    word: Word
    reason: str | None = None
    said: Mapping[str, Any] = MappingProxyType({})


class IterationFailed(Exception):
    """The error of a run whose iteration failed; recorded, never raised."""


def parse_stage(text: str) -> Stage:
    """`work:5` is a stage of at most five iterations, `plan` of one, `work:*` of any number."""
    hit = _STAGE.fullmatch(text.strip())
    if hit is None or hit.group(2) == "0":
        raise UsageError(
            f"{text!r} is not a stage; expected NAME, NAME:COUNT or NAME:*, such as work:5 "
            "(letters, digits, '.', '_' and '-')."
        )
    count = hit.group(2) or "1"
    return Stage(name=hit.group(1), most=0 if count == "*" else int(count))


def spell_stage(stage: Stage) -> str:
    """Format a stage as `parse_stage` reads it."""
    return f"{stage.name}:{stage.most or '*'}"


def parse_stages(texts: Sequence[str | Stage]) -> tuple[Stage, ...]:
    found = tuple(one if isinstance(one, Stage) else parse_stage(one) for one in texts)
    if not found:
        raise UsageError("A loop needs a stage: --stage work:5.")
    return found


def filled(text: str, words: Mapping[str, str]) -> str:
    """Fill placeholders. Not with `str.format`, which fails at other braces, and commands contain JSON. In one pass,
    so that a prompt with the text {stage} in it is sent unchanged.
    """
    out, at = [], 0
    while (start := text.find("{", at)) != -1:
        end = text.find("}", start)
        name = text[start + 1 : end] if end != -1 else ""
        if name in words:
            out += [text[at:start], words[name]]
            at = end + 1
        else:
            out.append(text[at : start + 1])
            at = start + 1
    return "".join((*out, text[at:]))


def decide(
    written: str, *, exit_code: int | None, failure: str | None, complaint: str = ""
) -> Decision:
    """Decide from the status file and from the exit code: a failure overrides the file.

    The file holds one word, or a JSON object with `decision` (or `status`) and perhaps `reason`.
    """
    decision = _decision_in(written)
    if failure is not None:
        return Decision(word="error", reason=failure, said=decision.said)
    if exit_code:
        reason = _ending(exit_code) + (f": {complaint}" if complaint else "")
        return Decision(word="error", reason=reason, said=decision.said)
    return decision


def _decision_in(written: str) -> Decision:
    text = written.strip()
    if not text:
        return Decision(word="continue")
    if not text.startswith("{"):
        word, _, rest = text.partition("\n")
        first, _, more = word.strip().partition(" ")
        return _judged(first.rstrip(":,."), (more + "\n" + rest).strip() or None, {})
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return _unknown(text)
    said = members.get("decision", members.get("status"))
    reason = members.get("reason", members.get("message"))
    return _judged(said, reason if isinstance(reason, str) else None, dict(members))


def _judged(word: Any, reason: str | None, said: dict[str, Any]) -> Decision:
    spelled = str(word).strip().lower()
    for known in WORDS:
        if spelled == known:
            return Decision(word=known, reason=reason, said=said)
    if spelled in _SYNONYMS:
        return Decision(word=_SYNONYMS[spelled], reason=reason, said=said)
    return _unknown(spelled)


def _unknown(text: str) -> Decision:
    expected = ", ".join(WORDS)
    return Decision(
        word="error", reason=f"The status file says {text[:80]!r}; expected {expected}."
    )


def _ending(exit_code: int) -> str:
    return (
        f"the command was ended by signal {-exit_code}"
        if exit_code < 0
        else f"the command exited with exit code {exit_code}"
    )
