"""`playhead import`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.common import Duration, home_of, json_option, print_json, store_option
from playhead.cli.run_names import note_import
from playhead.errors import UsageError
from playhead.host.project import project_of
from playhead.redact import Redactor
from playhead.tape import store as stores
from playhead.transcripts.importing_sessions import Imported, import_session
from playhead.transcripts.session_files import TOOLS, cwd_of, sources
from playhead.views.text.safe import one_line


@click.command("import")
@click.argument("tool", type=click.Choice(TOOLS))
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Include the sessions of all projects.")
@click.option("--since", type=Duration(), help="Only files modified within this time: 7d.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of sessions, newest first.",
)
@click.option("--no-redact", is_flag=True, help="Do not redact secrets.")
@json_option
@store_option
def command(
    tool: str, path: Path | None, everything: bool, since: float | None, limit: int | None,
    no_redact: bool, as_json: bool, store: Path | None,
) -> None:  # fmt: skip
    """Import the saved sessions of Claude Code or Codex as runs.

    Without PATH, imports the sessions of this project from ~/.claude/projects or ~/.codex/sessions.
    Imported runs can be listed, shown, played and compared, but not replayed. The session files are
    not changed; a session is imported again only when it has grown.

    \b
    playhead import claude
    playhead import codex --all --since 7d
    playhead import claude ~/.claude/projects/-srv-shop/0f9a….jsonl
    """
    found = _chosen(sources(tool, path), everything=everything or path is not None, since=since)
    home = stores.open_store(home_of(store))
    redactor = None if no_redact else _redactor(home)
    done: list[Imported] = []
    for source in found:
        one = import_session(tool, source, home, redactor=redactor)
        if one is not None:
            done.append(one)
        if limit is not None and len(done) >= limit:
            break
    note_import(home, [one.run.name for one in done if one.fresh], clock.wall_ns())
    if as_json:
        print_json([_members(one) for one in done])
        return
    if not done:
        raise UsageError(
            f"No {tool} session to import was found"
            f"{'' if path or everything else ' for this project; --all includes all projects'}."
        )
    for one in done:
        answers = "1 answer" if one.answers == 1 else f"{one.answers:,} answers"
        tools = "1 tool call" if one.tools == 1 else f"{one.tools:,} tool calls"
        what = f"{answers} · {tools}"
        was = "" if one.fresh else " · known"
        click.echo(f"{one.run.name}  {what}{was}  {one_line(one.prompt, 60)}")


def _chosen(found: list[Path], *, everything: bool, since: float | None) -> list[Path]:
    if since is not None:
        oldest = clock.wall_ns() - int(since * 1e9)
        found = [one for one in found if one.stat().st_mtime_ns >= oldest]
    if everything:
        return found
    project = project_of(Path.cwd())
    return [one for one in found if (cwd := cwd_of(one)) and project_of(Path(cwd)) == project]


def _redactor(home: Path) -> Redactor | None:
    settings = config.load()
    if not settings.redact:
        return None
    return Redactor(
        key=stores.redaction_key(home),
        variables=dict(os.environ),
        patterns=settings.redact_patterns,
        names=settings.redact_names,
        keep=settings.redact_keep,
    )


def _members(one: Imported) -> dict[str, Any]:
    return {
        "run": one.run.name,
        "path": str(one.run),
        "source": str(one.source),
        "fresh": one.fresh,
        "prompt": one.prompt,
        "answers": one.answers,
        "tool_calls": one.tools,
    }
