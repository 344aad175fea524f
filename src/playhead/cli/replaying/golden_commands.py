"""`playhead accept` and `playhead promote`: make a run the golden run, or a test."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from playhead.cli.common import home_to_read, json_option, print_json, store_option
from playhead.cli.run_names import find_run, run_argument
from playhead.errors import TapeNotReplayable, UsageError
from playhead.exporters.promoted_test import fixtures_of, test_source
from playhead.host.project import project_of
from playhead.launch.replaying.replay_run import check_tape
from playhead.library.annotate import make_golden
from playhead.library.run_rows import tapes_of
from playhead.story import tell
from playhead.story.original_calls import left_out_ref
from playhead.tape.layout import SINGLE_SUFFIX
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape
from playhead.tape.single_file import pack


@click.command("accept")
@run_argument
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Also rewrite this {SINGLE_SUFFIX} file; files made from its original are found automatically.",
)
@json_option
@store_option
def accept_command(run: str, files: tuple[Path, ...], as_json: bool, store: Path | None) -> None:
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
    wrong = [one for one in files if not one.name.endswith(SINGLE_SUFFIX)]
    if wrong:
        raise UsageError(
            f"{wrong[0]} is not the name of a single-file tape; expected NAME{SINGLE_SUFFIX}."
        )
    found = []
    if manifest.replay_of is not None:
        found = tapes_of(project_of(Path.cwd()), manifest.replay_of)
    written = list(dict.fromkeys(one.resolve() for one in (*files, *found)))
    for target in written:
        pack(path, target)
    superseded = make_golden(home_to_read(store), path)
    if as_json:
        answer = {"golden": path.name, "superseded": superseded}
        print_json({**answer, "written": [str(one) for one in written]})
        return
    click.echo(f"{path.name} is golden" + "".join(f", {one} no longer" for one in superseded) + ".")
    click.echo("".join(f"wrote {one}\n" for one in written), nl=False)


@click.command("promote")
@run_argument
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="Name of the test. Default: the run's name.")
@click.option(
    "--fixtures", is_flag=True, help="Also write tool calls, LLM responses and turns as JSON files."
)
@click.option("--force", "-f", is_flag=True, help="Replace an existing test with this name.")
@json_option
@store_option
def promote_command(
    run: str,
    folder: Path,
    name: str | None,
    fixtures: bool,
    force: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Write a pytest test from a run: a single-file tape for git, and a test that replays it.

    \b
    playhead promote last tests/
    playhead promote last tests/ --name late_refund --fixtures
    """
    path = find_run(store, run)
    tape = check_tape(path)
    called = re.sub(r"\W+", "_", name or Path(tape.manifest.name).stem).strip("_").lower() or "run"
    target, test = folder / "tapes" / f"{called}{SINGLE_SUFFIX}", folder / f"test_{called}.py"
    for made in (target, test):
        if made.exists() and not force:
            raise UsageError(
                f"{made} exists already. Use --name for another name, or --force to replace it."
            )
    written: list[Path] = []
    if tape.manifest.command:
        pack(path, target)
        test.write_text(test_source(called, tape.manifest, folder), encoding="utf-8")
        written = [target, test]
    elif not fixtures:
        raise TapeNotReplayable(
            f"{path.name} has no command that a test could run: a shell script recorded it. "
            "Add --fixtures to write its tool calls, LLM responses and turns."
        )
    if fixtures:
        for file, value in fixtures_of(tell(Tape(path))).items():
            place = folder / "fixtures" / called / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(
                json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
            )
            written.append(place)
    if as_json:
        print_json({"written": [str(one) for one in written]})
        return
    click.echo("\n".join(f"wrote {one}" for one in written))
    if tape.manifest.command:
        click.echo(f"run it: pytest {test}")
    else:
        click.echo("no test: the run has no command, because a shell script recorded it")
