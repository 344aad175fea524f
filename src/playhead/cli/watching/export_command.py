"""`playhead export`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from playhead.cli.common import home_to_read, json_option, overrides, print_json, store_option
from playhead.cli.progress_line import bar
from playhead.cli.run_names import find_tape, run_argument
from playhead.errors import UsageError
from playhead.host.private_files import write_export
from playhead.redact.forms import secrets_in_place
from playhead.story import Prices, Story, tell
from playhead.tape.layout import BUNDLE_SUFFIX
from playhead.tape.reader import Tape
from playhead.tape.store import run_path
from playhead.views.text import words

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("export")
@run_argument
@click.option(
    "--html", type=_FILE, metavar="FILE", help="The run in the viewer, as a single HTML file."
)
@click.option(
    "--no-files", is_flag=True, help="With --html: leave out the contents of changed files."
)
@click.option("--story", type=_FILE, metavar="FILE", help="Turns and calls as JSON.")
@click.option(
    "--fixtures",
    type=_FOLDER,
    metavar="DIR",
    help="Tool calls, LLM responses and turns as JSON files.",
)
@click.option(
    "--tape", type=_FILE, metavar="FILE", help="The whole tape in one file, for replays elsewhere."
)
@click.option(
    "--bundle",
    type=_FILE,
    metavar="FILE",
    help="The tape and the files of the run in one archive: NAME.playhead.zip.",
)
@click.option(
    "--parquet",
    metavar="DIR|URL",
    help="The figures of all runs of the store as Parquet files, by day: a folder, or s3://bucket/prefix.",
)
@json_option
@store_option
def command(
    *,
    run: str,
    html: Path | None,
    no_files: bool,
    story: Path | None,
    fixtures: Path | None,
    tape: Path | None,
    bundle: Path | None,
    parquet: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Export a run as files: a web page, its story, fixtures, or the whole tape.

    The page opens in any browser, without a server, a network or Playhead.

    \b
    playhead export last --html run.html        for an issue or a chat
    playhead export last --fixtures tests/data  tool calls and answers, for your own tests
    playhead export last --story run.json --tape run.tape.jsonl
    playhead export last --bundle run.playhead.zip     with the files, for `files`, `checkout`, `replay`
    playhead export --parquet stats/            runs, calls, turns and files of all runs, for `playhead sql`
    playhead export --parquet s3://tapes/stats  the same in an object store
    """
    if parquet is not None:
        if html or story or fixtures or tape or bundle or run != "last":
            raise UsageError("--parquet exports all runs, so it takes no RUN and no other form.")
        _parquet(parquet, store, as_json=as_json)
        return
    if not (html or story or fixtures or tape or bundle):
        raise UsageError("Nothing to write. Name a file: `playhead export RUN --html run.html`.")
    found = find_tape(store, run)
    # One tape for the story and for the redaction report: opening thousands of segments takes a second.
    recorded = Tape(found)
    whole = tell(recorded, prices=Prices(overrides=overrides()))
    written = [
        *([_page(whole, found, html, files=not no_files)] if html else ()),
        *([_story(whole, story)] if story else ()),
        *(_fixtures(whole, fixtures) if fixtures else ()),
        *([_tape(found, tape)] if tape else ()),
        *([_bundle(found, bundle)] if bundle else ()),
    ]
    redacted = _redacted_secrets(recorded)
    click.echo(f"playhead: {_redaction_report(whole, redacted)}", err=True)
    if as_json:
        sizes = [{"path": str(one), "bytes": one.stat().st_size} for one in written]
        print_json({"written": sizes, "redacted": redacted})
        return
    for one in written:
        click.echo(f"wrote {one} ({words.size(one.stat().st_size)})")


def _parquet(target: str, store: Path | None, *, as_json: bool) -> None:
    from playhead.analytics.catalogue_tables import RunToRead
    from playhead.analytics.duck import MARKER, write_parquet
    from playhead.analytics.tape_tables import TapeRows, tape_rows
    from playhead.library.engine import database_of
    from playhead.library.indexing import update
    from playhead.remote.folder_copies import download, upload
    from playhead.remote.objects import ObjectFolder

    # First: an address that cannot be used must not cost the time of an export.
    remote = ObjectFolder(target, for_writing=True) if "://" in target else None
    home = home_to_read(store)
    with bar("Reading new runs") as progress:
        update(home, prices=overrides(), progress=progress)
    db, prices = database_of(home), Prices(overrides=overrides())

    def rows_of(one: RunToRead) -> TapeRows:
        return tape_rows(one, run_path(home, one.id), prices)

    if remote is None:
        counts = write_parquet(db, Path(target), rows_of)
    else:
        with TemporaryDirectory(prefix="playhead-parquet-") as scratch:
            if remote.facts(MARKER) is not None:
                download(remote, Path(scratch), MARKER)  # then only changed runs are read
            counts = write_parquet(db, Path(scratch), rows_of)
            upload(Path(scratch), remote, MARKER)
    if as_json:
        print_json({"path": target, "rows": counts})
        return
    told = ", ".join(f"{words.count(number)} {name}" for name, number in counts.items())
    click.echo(f"wrote {target} ({told})")


def _redacted_secrets(tape: Tape) -> dict[str, int]:
    """Different secrets that were redacted, by kind."""
    seen: dict[str, str] = {}
    for line in tape.lines():
        for kind, digest in secrets_in_place(line.raw.decode("utf-8", "replace")):
            # One secret may stand in a header and in a field.
            seen.setdefault(digest, kind)
    return dict(sorted(Counter(seen.values()).items()))


def _redaction_report(story: Story, redacted: Mapping[str, int]) -> str:
    """Return the warning to read before an export is shared."""
    if not story.manifest.redacted:
        return "recorded without redaction: check it for secrets before you share it."
    if not redacted:
        return "no secrets were found when this was recorded. Check it before you share it."
    kinds = ", ".join(f"{count} {kind}" for kind, count in redacted.items())
    noun = "secret was" if sum(redacted.values()) == 1 else "secrets were"
    return (
        f"{sum(redacted.values())} {noun} redacted ({kinds}). Redaction does not recognise every secret: "
        "check it before you share it; `playhead scrub` removes more."
    )


def _page(story: Story, run: Path, file: Path, *, files: bool) -> Path:
    from playhead.views.web.page_blocks import run_blocks
    from playhead.views.web.viewer_files import standalone

    title = f"{story.manifest.name or story.manifest.run} · Playhead"
    blocks = run_blocks(story, report=_report(story, run)) | _files(story, run, wanted=files)
    blocks["outline"]["file_events"] = story.file_events if "files" in blocks else 0
    made = standalone(blocks, title=title)
    write_export(file, made)
    return file


def _files(story: Story, run: Path, *, wanted: bool) -> dict[str, Any]:
    """The changed files as blocks of the page; a note says what they add to it, and what is left out."""
    from playhead.views.web.file_blocks import file_blocks
    from playhead.workspace.history import read_history

    if not wanted or not story.file_events:
        return {}
    blocks = file_blocks(story, read_history(Tape(run), run.parent.parent))
    if not blocks:
        return {}
    form = blocks["files"]
    paths = {one["path"] for step in form["steps"] for one in step["changes"]}
    left_out = form["versions_left_out"]
    some = f" ({left_out:,} versions left out)" if left_out else ""
    click.echo(
        f"playhead: the page includes the contents of changed files: {len(paths):,}{some}. "
        "--no-files leaves them out.",
        err=True,
    )
    return blocks


def _report(story: Story, run: Path) -> dict[str, Any] | None:
    """The report of a replay, where its original is in the same store."""
    from playhead.replay.modes.replay_options import read_options
    from playhead.replay.replay_plan import read_plan
    from playhead.replay.report.verdict import judge

    of = story.manifest.replay_of or story.manifest.extra.get("forked_from")
    plan = read_plan(run)
    if plan is None or not isinstance(of, str) or not (run.parent / of).is_dir():
        return None
    wishes = read_options(plan.live, plan.options)
    return judge(Tape(run.parent / of), Tape(run), wishes=wishes).as_json()


def _story(story: Story, file: Path) -> Path:
    from playhead.story.story_json import story_json

    return _json(file, story_json(story))


def _fixtures(story: Story, folder: Path) -> Iterator[Path]:
    from playhead.exporters.promoted_test import fixtures_of

    folder.mkdir(parents=True, exist_ok=True)
    for name, value in fixtures_of(story).items():
        yield _json(folder / name, value)


def _tape(run: Path, file: Path) -> Path:
    from playhead.tape.single_file import pack

    pack(run, file)
    return file


def _bundle(run: Path, file: Path) -> Path:
    from playhead.exporters.bundle import write_bundle

    if not file.name.endswith(BUNDLE_SUFFIX):
        raise UsageError(f"A bundle is named NAME{BUNDLE_SUFFIX}; commands recognise it by that.")
    write_bundle(run, file)
    return file


def _json(file: Path, value: Any) -> Path:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    write_export(file, text + "\n")
    return file
