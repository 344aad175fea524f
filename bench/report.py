"""Tables of docs/benchmarks.md, each between two marks. Knows the page; not what is measured."""

from __future__ import annotations

import platform
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def put_table(name: str, table: str) -> None:
    """Replace the table of that name. The machine is named by what matters to a ratio."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    version = ".".join(platform.python_version_tuple()[:2])
    said = f"{begin}\n2 cores, Linux, CPython {version}.\n\n{table}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: said, text), encoding="utf-8")


def put_printed(name: str, printed: str) -> None:
    """What a bench printed, under its name in the last part of the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- printed by {name} -->", f"<!-- end of what {name} printed -->"
    said = f"{begin}\n### {name}\n\n```text\n{printed.strip()}\n```\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        text = f"{text.rstrip()}\n\n{begin}{end}\n"
    text = pattern.sub(lambda _: said, text)
    PAGE.write_text(text, encoding="utf-8")
