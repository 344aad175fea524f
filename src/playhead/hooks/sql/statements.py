"""Describe the messages that a client sends to PostgreSQL: statements, parameters, and a display name. Pure."""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING

from playhead.hooks.sql import pgwire

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from playhead.hooks.sql.pgwire import Message

_COMMENT = re.compile(r"\s*(?:--[^\n]*\n|/\*.*?\*/)\s*", re.DOTALL)
_WORD = re.compile(r"\s*\(?\s*([A-Za-z]+)")
_TABLE = re.compile(
    r'\b(?:from|into|update|table|copy|join|index|view|schema|extension)\s+(?:if\s+(?:not\s+)?exists\s+|only\s+)?([\w."]+)',
    re.IGNORECASE,
)

# SQLAlchemy puts the address of an object into the names of its server-side cursors.
_ADDRESS = re.compile(r"\bc_[0-9a-f]{9,16}_(?=[0-9a-f]+\b)")

# Messages after which the server answers. The messages up to one of these are a batch.
ENDS = frozenset({b"Q", b"S", b"H", b"F", b"c", b"f", b"d", b"X"})
# Messages that the server answers with "ready for the next one".
ANSWERED = frozenset({b"Q", b"S", b"F"})


class Statements:
    """The statements of one connection. The client executes prepared statements by their names later."""

    def __init__(self) -> None:
        self._prepared: dict[bytes, str] = {}

    def steps(self, batch: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the steps of a batch of messages."""
        steps: list[dict[str, Any]] = []
        for message in batch:
            step = self._step(message)
            if step is not None:
                steps.append(step)
        return steps

    def _step(self, message: Message) -> dict[str, Any] | None:
        kind, content = message
        if kind == b"Q":
            return {"query": _settled(pgwire.text(content.rstrip(b"\0")))}
        if kind == b"P":
            name, _, rest = content.partition(b"\0")
            sql = self._prepared[name] = _settled(pgwire.text(rest.partition(b"\0")[0]))
            return {"prepare": sql} if name else None
        if kind == b"B":
            return self._bound(content)
        if kind == b"E":
            name, _, rest = content.partition(b"\0")
            (rows,) = struct.unpack_from("!I", rest) if len(rest) >= 4 else (0,)
            return {"rows": rows} if rows else None
        if kind == b"C":
            return {"close": pgwire.text(content.rstrip(b"\0"))}
        if kind == b"D":
            return (
                {"describe": pgwire.text(content[1:].rstrip(b"\0"))}
                if content[:1] == b"S"
                else None
            )
        if kind == b"d":
            return {"copy": pgwire.value_of(content)}
        if kind in (b"c", b"f"):
            return {"copied": kind == b"c"}
        return {"function": pgwire.value_of(content)} if kind == b"F" else None

    def _bound(self, content: bytes) -> dict[str, Any]:
        _, _, rest = content.partition(b"\0")
        name, _, rest = rest.partition(b"\0")
        (formats,) = struct.unpack_from("!H", rest)
        at = 2 + 2 * formats
        values = pgwire.fields(rest, at)
        at += 2 + sum(4 + len(one or b"") for one in values)
        step: dict[str, Any] = {"query": self._prepared.get(name, "")}
        if values:
            step["parameters"] = [pgwire.value_of(one) for one in values]
        if b"\0\1" in (
            rest[at + 2 :][index : index + 2] for index in range(0, len(rest) - at - 2, 2)
        ):
            step["binary"] = True
        return step


def _settled(sql: str) -> str:
    return _ADDRESS.sub("c_", sql)


def request_of(to: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    if len(steps) == 1:
        return {"to": to, **steps[0]}
    return {"to": to, "batch": steps}


def line_of(steps: list[dict[str, Any]]) -> bytes:
    """Return the steps that a client sends within a statement (COPY, a pipeline), as lines of JSON."""
    lines = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in steps)
    return "".join(f"{one}\n" for one in lines).encode()


def name_of(steps: list[dict[str, Any]]) -> str:
    """The verb and the table: `INSERT checkpoints`."""
    sql = next(
        (
            str(one.get("query") or one["prepare"])
            for one in steps
            if "query" in one or "prepare" in one
        ),
        "",
    )
    sql = _COMMENT.sub(" ", sql)
    verb = _WORD.match(sql)
    if verb is None:
        return "sync"
    table = _TABLE.search(sql)
    more = f" +{len(steps) - 1}" if len(steps) > 1 else ""
    return f"{verb[1].upper()}{' ' + table[1].strip(chr(34)) if table else ''}{more}"
