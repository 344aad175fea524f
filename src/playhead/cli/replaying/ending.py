"""How a replay or a fork ends for the person: report, comparison, exit code. Knows the views."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playhead import config
from playhead.errors import TapeNotReplayable
from playhead.launch.replay_command import Replayed
from playhead.replay.report.verdict import Report
from playhead.story import Prices, tell
from playhead.story.compare import compare
from playhead.tape.reader import Tape
from playhead.views.text.comparison import print_comparison
from playhead.views.text.report import print_report

# The verdicts of a replay, as a script sees them.
EXIT_CODES = {"identical": 0, "diverged": 3, "unproven": 6}


@contextmanager
def store_for(store: Path | None, *, persist: bool) -> Iterator[Path | None]:
    """Where the new run goes; without `persist` it is gone afterwards."""
    if persist:
        yield store
        return
    folder = Path(tempfile.mkdtemp(prefix="playhead-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell_end(
    original: Tape, replayed: Replayed, *, report_file: Path | None, as_json: bool, quiet: bool
) -> None:
    """On stderr: stdout is the program's."""
    report = replayed.report
    if report_file is not None:
        members = json.dumps(report.as_json(), ensure_ascii=False, indent=2, default=str)
        report_file.write_text(members + "\n")
    if as_json:
        line = json.dumps(report.as_json(), ensure_ascii=False, default=str) + "\n"
        os.write(2, line.encode("utf-8", "backslashreplace"))
    elif not quiet:
        print_report(report)
        if report.live or report.forked_at is not None:
            _compare(original, Tape(replayed.recorded.run.path))


def _compare(left: Tape, right: Tape) -> None:
    prices = Prices(overrides=config.load().sections.get("prices", {}))
    print_comparison(compare(tell(left, prices=prices), tell(right, prices=prices)), stderr=True)


def exit_code_of(replayed: Replayed) -> int:
    report: Report = replayed.report
    unusable = TapeNotReplayable.exit_code
    if replayed.recorded.ended.code == unusable and report.verdict != "identical":
        return unusable
    if report.recovered is not None:
        return 0 if report.recovered else 3
    return EXIT_CODES[report.verdict]
