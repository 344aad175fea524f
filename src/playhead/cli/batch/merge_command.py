"""`playhead batch merge`: one report from the reports of the shards."""

from __future__ import annotations

import json
from pathlib import Path

import click

from playhead.cli.batch.batch_options import min_pass_rate_option, report_options, write_reports
from playhead.errors import UsageError
from playhead.story.merged_results import merge, results_from
from playhead.story.verdicts import Results
from playhead.views.text.replay_results import print_results


@click.command("batch merge")
@click.argument(
    "reports",
    metavar="REPORT...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@min_pass_rate_option
@report_options
def command(
    *,
    reports: tuple[Path, ...],
    min_pass_rate: float | None,
    junit: Path | None,
    json_file: Path | None,
    html: Path | None,
) -> None:
    """Merge the reports of the shards of a batch into one.

    \b
    playhead batch merge shard-*.json
    playhead batch merge shard-*.json --junit junit.xml --html batch.html --min-pass-rate 0.9

    REPORT is a file that `playhead batch --shard i/n --json FILE` has written. The merged report is the same for every
    number of shards; its time is the sum of the times of the replays.

    Exit codes: those of `playhead batch`; 1 if the report of a shard is missing, or a shard stopped early.
    """
    results = merge([(str(one), _read(one)) for one in reports], min_pass_rate)
    write_reports(results, junit=junit, json_file=json_file, html=html)
    print_results(results)
    click.get_current_context().exit(results.exit_code)


def _read(path: Path) -> Results:
    try:
        return results_from(json.loads(path.read_bytes()))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise UsageError(
            f"{path} is not a report of a batch. Expected a file that `playhead batch --json FILE` has written."
        ) from None
