"""`playhead doctor`."""

from __future__ import annotations

import os
from dataclasses import asdict

import click
from rich.text import Text

from playhead.cli.common import json_option, print_json
from playhead.launch.examination import examine
from playhead.views.text.console import console
from playhead.views.text.safe import one_line


@click.command()
@json_option
def command(*, as_json: bool) -> None:
    """Check what works on this machine: fences, watching, shims, interpreters and extras.

    Everything is tried; nothing is changed. What is missing is reported with the reason. The exit code
    is 0 in either case.
    """
    found = examine(os.environ)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    out = console()
    for one in found:
        mark = ("✓", "ok") if one.ok else ("✗", "failed")
        out.print(Text.assemble(mark, f" {one.area:<7} {one.name:<12} ", one_line(one.detail, 200)))
