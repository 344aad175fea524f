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
from playhead.library.annotate import make_golden
from playhead.library.run_rows import tapes_of
from playhead.story.original_calls import left_out_ref
from playhead.tape.manifest import status_of
from playhead.tape.single_file import SUFFIX, pack


@click.command("accept")
@run_argument
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Also rewrite this {SUFFIX} file; files made from its original are found automatically.",
)
@json_option
@store_option
def command(run: str, files: tuple[Path, ...], as_json: bool, store: Path | None) -> None:
    """Make a run or a replay the golden run, which later runs are compared with.

    \b
    playhead accept 20261115-0711             after reviewing `playhead diff`
    playhead accept last --file tests/tapes/refund.tape.jsonl

    Tags the run golden=true, records which run it supersedes and removes that run's tag. Rewrites the
    single-file tapes of this project that were made from its original.
    """
    path = find_run(store, run)
    tape = check_tape(path)
    manifest = tape.manifest
    if any(left_out_ref(event.data) for event in tape.events()):
        raise TapeNotReplayable(
            f"{path.name} is a plain replay: its answers are on the tape of {manifest.replay_of}. "
            "Accept that run, a new recording, or a replay with `--live llm`."
        )
    if status_of(manifest) == "running":
        raise UsageError(f"{path.name} is still running. Accept it after it has ended.")
    wrong = [one for one in files if not one.name.endswith(SUFFIX)]
    if wrong:
        raise UsageError(
            f"{wrong[0]} is not the name of a single-file tape; expected NAME{SUFFIX}."
        )
    found = []
    if manifest.replay_of is not None:
        found = tapes_of(project_of(Path.cwd()), manifest.replay_of)
    written = list(dict.fromkeys(one.resolve() for one in (*files, *found)))
    for target in written:
        pack(path, target)
    superseded = make_golden(home_of(store), path)
    if as_json:
        told = {"golden": path.name, "superseded": superseded}
        print_json({**told, "written": [str(one) for one in written]})
        return
    click.echo(f"{path.name} is golden" + "".join(f", {one} no longer" for one in superseded) + ".")
    click.echo("".join(f"wrote {one}\n" for one in written), nl=False)
