"""Find the session files of coding agents. Knows folders and file names; the tools' modules parse the lines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.transcripts import transcript_fields as fields
from playhead.transcripts.claude_code import ClaudeReader
from playhead.transcripts.codex_files import RolloutReader
from playhead.transcripts.transcript_lines import objects
from playhead.transcripts.transcript_steps import SessionStarted, TranscriptStep

TOOLS = ("claude", "codex")
_PEEK = 64 * 1024


def sources(tool: str, path: Path | None, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the session files below `path`, or in the tool's own folder; newest first."""
    root = path.expanduser() if path is not None else _kept(tool, environ)
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise UsageError(
            f"There is no {root}. Name the file or folder: playhead import {tool} PATH."
        )
    pattern = "*.jsonl" if tool == "claude" else "rollout-*.jsonl"
    found = [
        one
        for one in root.rglob(pattern)
        if one.is_file() and not one.name.startswith("agent-") and "subagents" not in one.parts
    ]
    return sorted(found, key=lambda one: one.stat().st_mtime_ns, reverse=True)


def cwd_of(source: Path) -> str | None:
    """Return the working folder of the session, from its first lines."""
    with source.open("rb") as file:
        lines = file.read(_PEEK).split(b"\n")
    for line in objects(lines):
        cwd = line.get("cwd") or fields.mapping(line.get("payload")).get("cwd")
        if isinstance(cwd, str) and cwd:
            return cwd
    return None


def _kept(tool: str, environ: Mapping[str, str]) -> Path:
    if tool == "claude":
        folder = environ.get("CLAUDE_CONFIG_DIR")
        return (Path(folder) if folder else Path.home() / ".claude") / "projects"
    folder = environ.get("CODEX_HOME")
    return (Path(folder) if folder else Path.home() / ".codex") / "sessions"


def steps_of(tool: str, source: Path) -> list[TranscriptStep]:
    lines = list(objects(source.read_bytes().split(b"\n")))
    if tool == "codex":
        rollout = RolloutReader()
        for line in lines:
            rollout.feed(line)
        return rollout.steps()
    claude = ClaudeReader()
    whole = _with_agents(source, lines)
    for line in whole:
        claude.feed(line)
    return [_introduced(whole, source), *claude.steps()]


def _introduced(lines: list[dict[str, Any]], source: Path) -> SessionStarted:
    """Collect the metadata of a session from all lines: no single line has all of it."""

    def first(name: str) -> str | None:
        return next((line[name] for line in lines if fields.maybe(line.get(name))), None)

    return SessionStarted(
        tool="claude",
        session=first("sessionId") or source.stem,
        cwd=first("cwd"),
        version=first("version"),
    )


def _with_agents(source: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge the files of sub-agents: their lines are inserted by time, below the tool call that started them."""
    owners: dict[str, str] = {}
    for line in lines:
        result = fields.mapping(line.get("toolUseResult"))
        for block in fields.items(fields.mapping(line.get("message")).get("content")):
            if isinstance(block, dict) and fields.maybe(result.get("agentId")):
                owners[result["agentId"]] = fields.text(block.get("tool_use_id"))
    found = list(lines)
    beside = source.parent / source.stem / "subagents"
    for file in sorted((*source.parent.glob("agent-*.jsonl"), *beside.glob("agent-*.jsonl"))):
        theirs = list(objects(file.read_bytes().split(b"\n")))
        if not theirs or theirs[0].get("sessionId") != source.stem:
            continue
        number = fields.text(theirs[0].get("agentId")) or file.stem.removeprefix("agent-")
        owner = owners.get(number) or number
        found += [{**line, "parent_tool_use_id": owner} for line in theirs]
    if len(found) == len(lines):
        return lines
    known = 0
    moments = []
    for line in found:
        known = fields.moment_ns(line.get("timestamp")) or known
        moments.append(known)
    order = sorted(range(len(found)), key=lambda place: moments[place])
    return [found[place] for place in order]
