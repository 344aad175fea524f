"""`playhead promote`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, run_argument, store_option
from playhead.errors import UsageError
from playhead.exporters.promoted_test import fixtures_of, test_source
from playhead.launch.replay_command import check_tape
from playhead.story import tell
from playhead.tape.reader import Tape
from playhead.tape.single_file import SUFFIX, pack


@click.command("promote")
@run_argument
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="Name of the test. Default: the run's name.")
@click.option(
    "--fixtures", is_flag=True, help="Also write tool calls, LLM responses and turns as JSON files."
)
@click.option("--force", is_flag=True, help="Replace an existing test with this name.")
@json_option
@store_option
def command(
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
    target, test = folder / "tapes" / f"{called}{SUFFIX}", folder / f"test_{called}.py"
    for made in (target, test):
        if made.exists() and not force:
            raise UsageError(
                f"{made} exists already. Use --name for another name, or --force to replace it."
            )
    pack(path, target)
    test.write_text(test_source(called, tape.manifest), encoding="utf-8")
    written = [target, test]
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
    else:
        click.echo("\n".join(f"wrote {one}" for one in written) + f"\nrun it: pytest {test}")
