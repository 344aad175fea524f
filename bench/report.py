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
