"""The steps of `playhead session`: their arguments, actions and output. Click handles help and errors.

Click costs a step a third of its time. So `read` parses well-formed arguments, and leaves everything else to
the ordinary command line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import PlayheadError
from playhead.host.later import Later
from playhead.loop import shell

if TYPE_CHECKING:
    from playhead import config
    from playhead.loop.iteration import Iteration
else:
    config = Later("playhead.config")  # not loaded if the store is named

# step → (positional arguments, options with a value, flags).
STEPS: dict[str, tuple[tuple[str, ...], frozenset[str], frozenset[str]]] = {
    "init": (
        ("name",),
        frozenset({"stage", "level", "record-level", "store"}),
        frozenset({"record", "no-record", "resume", "force", "json"}),
    ),
    "next": (
        ("name",),
        frozenset({"prompt", "response", "exit-code", "command", "stage", "context", "store"}),
        frozenset({"json"}),
    ),
    "iteration-start": (("name",), frozenset({"stage", "context", "store"}), frozenset({"json"})),
    "prompt": (("name", "file"), frozenset({"command", "store"}), frozenset()),
    "response": (("name", "file"), frozenset({"exit-code", "store"}), frozenset({"json"})),
    "end": (("name",), frozenset({"status", "store"}), frozenset()),
}
_MANY = frozenset({"stage"})  # of `init`


def read(words: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """Return the step and its arguments. None: the arguments are not well-formed, and click must explain why."""
    if not words or words[0] not in STEPS:
        return None
    step, rest = words[0], list(words[1:])
    names, options, flags = STEPS[step]
    plain: list[str] = []
    given: dict[str, Any] = {}
    while rest:
        word = rest.pop(0)
        name = word[2:]
        if not word.startswith("-") or word == "-":
            plain.append(word)
        elif word.startswith("--") and name in flags:
            given[name] = True
        elif word.startswith("--") and name in options and rest:
            value = rest.pop(0)
            given[name] = [*given.get(name, []), value] if _many(step, name) else value
        else:
            return None
    if not plain and (session := os.environ.get("PLAYHEAD_SESSION")):
        plain = [session]
    if not plain or len(plain) > len(names):
        return None
    return step, {**given, **dict(zip(names, plain, strict=False))}


def perform(step: str, given: Mapping[str, Any]) -> tuple[str, int]:
    """Perform the step. Return the text for stdout, and the exit code."""
    store = given.get("store") or os.environ.get("PLAYHEAD_HOME")
    home = Path(store).expanduser().absolute() if store else config.load().home
    name, as_json = given["name"], given.get("json", False)
    if step == "init":
        asked = True if given.get("record") else False if given.get("no-record") else None
        made = shell.init(
            name, given.get("stage") or (), record=asked,
            level=given.get("record-level") or given.get("level"), home=home,
            resume=given.get("resume", False), force=given.get("force", False),
        )  # fmt: skip
        run = made.state.run
        facts = {"session": name, "run": run, "status": str(made.status_file)}
        facts["path"] = None if run is None else str(home / "runs" / run)
        return (json.dumps(facts) if as_json else ""), 0
    if step == "next":
        return _next(name, home, given, as_json=as_json)
    if step == "iteration-start":
        context = given.get("context")
        context = None if context is None else Path(context).expanduser().absolute()
        begun = shell.start(name, home, stage=given.get("stage"), context=context)
        if begun is None:
            return "", 1
        return _begun(begun, {}, as_json=as_json)
    if step == "prompt":
        text = _content(given.get("file")).decode("utf-8", "replace")
        shell.prompt(name, home, text, command=given.get("command") or "agent")
        return "", 0
    if step == "end":
        shell.end(name, home, given.get("status"))
        return "", 0
    return _response(name, home, given, as_json=as_json)


def main(words: Sequence[str]) -> int | None:
    """Return the exit code. None: the ordinary command line must handle these arguments."""
    found = read(words)
    if found is None:
        return None
    step, given = found
    if not _is_known(step, given):
        return None
    try:
        text, code = perform(step, given)
    except (PlayheadError, OSError) as error:
        sys.stderr.write(f"playhead: {error}\n")
        return error.exit_code if isinstance(error, PlayheadError) else 1
    if text:
        sys.stdout.write(text + "\n")
    return code


def _next(name: str, home: Path, given: Mapping[str, Any], *, as_json: bool) -> tuple[str, int]:
    """Do all steps of an iteration in one process: end the open one with its response, begin the next with its
    prompt.
    """
    code, file = given.get("exit-code"), given.get("response")
    raw = _content(file) if file is not None and shell.is_open(name, home) else None
    context = given.get("context")
    begun, path = shell.advance(
        name,
        home,
        raw,
        exit_code=None if code is None else int(code),
        prompt=given.get("prompt"),
        command=given.get("command") or "agent",
        stage=given.get("stage"),
        context=None if context is None else Path(context).expanduser().absolute(),
    )
    if begun is None:
        return "", 1
    return _begun(begun, {} if path is None else {"PLAYHEAD_PROMPT": str(path)}, as_json=as_json)


def _begun(begun: Iteration, more: Mapping[str, str], *, as_json: bool) -> tuple[str, int]:
    variables = {**shell.variables(begun), **more}
    return (json.dumps(variables) if as_json else shell.exports(variables)), 0


def _response(name: str, home: Path, given: Mapping[str, Any], *, as_json: bool) -> tuple[str, int]:
    code = given.get("exit-code")
    raw = _content(given.get("file"))
    ended = shell.response(name, home, raw, exit_code=None if code is None else int(code))
    decision = ended.decision
    if decision is None:
        return "", 0
    facts = {"decision": decision.word, "reason": decision.reason}
    return (json.dumps(facts) if as_json else decision.word), int(decision.word == "error")


def _content(file: str | None) -> bytes:
    return sys.stdin.buffer.read() if file in (None, "-") else Path(file).read_bytes()


def _many(step: str, name: str) -> bool:
    return step == "init" and name in _MANY


def _is_known(step: str, given: Mapping[str, Any]) -> bool:
    """Return whether the step accepts these values."""
    if step == "init" and (level := given.get("record-level") or given.get("level")):
        return level in ("minimal", "standard", "full")
    if step == "end" and "status" in given:
        return given["status"] in shell.STATUSES
    code = given.get("exit-code")
    return code is None or code.lstrip("-").isdigit()
