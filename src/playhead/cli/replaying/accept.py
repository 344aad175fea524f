"""`playhead accept`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import (
    find_run,
    home_of,
    json_option,
    print_json,
    run_argument,
    store_option,
)
from playhead.errors import TapeNotReplayable, UsageError
from playhead.host.project import project_of
from playhead.launch.replay_command import check_tape
from playhead.library.crowning import crown
from playhead.library.golden import tapes_of
from playhead.story.borrow import quiet_ref
from playhead.tape.manifest import status_of
from playhead.tape.single import SUFFIX, pack


@click.command("accept")
@run_argument
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Rewrite this {SUFFIX}, too; those of the run's original are found by themselves.",
)
@json_option
@store_option
def command(run: str, files: tuple[Path, ...], as_json: bool, store: Path | None) -> None:
    """Make a run, or a replay, the golden one: what is replayed and compared with from now on.

    \b
    playhead accept 20261115-0711             after a look at `playhead diff`
    playhead accept last --file tests/tapes/refund.tape.jsonl

    The run is tagged golden=true and names what it supersedes, whose tag goes. Single-file tapes in
    this project that were made of its original are rewritten from it.
    """
    path = find_run(store, run)
    tape = check_tape(path)
    manifest = tape.manifest
    if any(quiet_ref(event.data) for event in tape.events()):
        raise TapeNotReplayable(
            f"{path.name} is a plain replay: its answers are on the tape of {manifest.replay_of}, which "
            "stays the one to measure by. Accept a new run, or a replay with `--live llm`."
        )
    if status_of(manifest) == "running":
        raise UsageError(f"{path.name} is still running: accept it when it has ended.")
    wrong = [one for one in files if not one.name.endswith(SUFFIX)]
    if wrong:
        raise UsageError(f"{wrong[0]} is no name for a single-file tape: expected NAME{SUFFIX}.")
    found = []
    if manifest.replay_of is not None:
        found = tapes_of(project_of(Path.cwd()), manifest.replay_of)
    written = list(dict.fromkeys(one.resolve() for one in (*files, *found)))
    for target in written:
        pack(path, target)
    superseded = crown(home_of(store), path)
    if as_json:
        told = {"golden": path.name, "superseded": superseded}
        print_json({**told, "written": [str(one) for one in written]})
        return
    click.echo(f"{path.name} is golden" + "".join(f", {one} no longer" for one in superseded) + ".")
    click.echo("".join(f"wrote {one}\n" for one in written), nl=False)
