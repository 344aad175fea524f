"""`playhead scrub`: remove secrets from runs that are already recorded."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from playhead import config
from playhead.cli.common import json_option, print_json, store_option
from playhead.cli.run_names import find_run, run_argument
from playhead.errors import UsageError
from playhead.redact import Redactor
from playhead.tape import store as stores
from playhead.tape.care.scrub import scrub
from playhead.tape.store import announce


@click.command("scrub")
@run_argument
@click.option("--text", "texts", multiple=True, metavar="TEXT", help="Remove this text.")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="REGEX",
    help="Remove everything that this regular expression matches.",
)
@json_option
@store_option
def command(
    *,
    run: str,
    texts: tuple[str, ...],
    rules: tuple[str, ...],
    as_json: bool,
    store: Path | None,
) -> None:
    """Remove secrets from a recorded run: lines, blobs, manifest, notes and the catalogue.

    Without options, the whole run is redacted again with the current rules. The tape stays valid; a signature is
    removed. Files of the workspace, and exports that you made before, are not changed: export again.

    \b
    playhead scrub last --text "hunter2 is my password"
    playhead scrub last --rule 'ACME-[0-9]{6}'
    """
    path = find_run(store, run)
    home = path.parent.parent
    done = scrub(path, _redactor(home, texts, rules))
    # The catalogue contains texts of the run, even in free pages of the database: it is rebuilt.
    for one in home.glob("library.db*"):
        one.unlink(missing_ok=True)
    announce(path)
    if as_json:
        changed = {"events": done.events, "blobs": done.blobs, "manifest": done.manifest}
        print_json({"id": path.name, **changed})
        return
    blobs = f", {done.blobs} blobs deleted" if done.blobs else ""
    names = ", its manifest too" if done.manifest else ""
    click.echo(f"{path.name}: {done.events:,} events changed{blobs}{names}.")
    click.echo("Earlier exports and copies are unchanged.")


def _redactor(home: Path, texts: tuple[str, ...], rules: tuple[str, ...]) -> Redactor:
    settings = config.load()
    for one in rules:
        try:
            re.compile(one)
        except re.error as error:
            raise UsageError(f"--rule {one!r} is not a regular expression: {error}.") from None
    if any(not one for one in (*texts, *rules)):
        raise UsageError("An empty --text or --rule would match everything.")
    return Redactor(
        key=stores.redaction_key(home),
        variables=dict(os.environ),
        patterns=(*settings.redact_patterns, *map(re.escape, texts), *rules),
        names=settings.redact_names,
        keep=settings.redact_keep,
    )
