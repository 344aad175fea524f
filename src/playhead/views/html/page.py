"""The frame of a page, and taped text made fit for it. Knows HTML and colours; nothing of runs."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from playhead.views.text.safe import clean

# The browser is told to run and to fetch nothing, whatever a stranger's tape says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c1e21; --quiet: #666c75; --line: #dcdfe4;
  --good: #14713d; --bad: #b3261e; --odd: #8a5a00; --soft: #f4f5f7; --add: #e3f5e9; --del: #fbe6e4; }
@media (prefers-color-scheme: dark) { :root { --back: #14161a; --text: #e4e6ea; --quiet: #9aa1ab;
  --line: #30343b; --good: #5fd38d; --bad: #ff8a80; --odd: #f0b849; --soft: #1d2025; --add: #16301f;
  --del: #3a1d1b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .25rem; } p { margin: .25rem 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--quiet); font-weight: 600; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { margin: .35rem 0; padding: .6rem; background: var(--soft); border-radius: 4px; overflow: auto;
  max-height: 30rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; } summary:focus-visible { outline: 2px solid var(--odd); }
.good { color: var(--good); } .bad { color: var(--bad); } .odd { color: var(--odd); } .quiet { color: var(--quiet); }
ins, del { display: block; text-decoration: none; } ins { background: var(--add); } del { background: var(--del); }
ul { margin: .25rem 0; padding-left: 1.2rem; }
"""


def page(title: str, body: Iterable[str]) -> str:
    """A whole page; `body` is HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def text(taped: object) -> str:
    """Somebody else's text as text: no markup, no character that hides or turns what is read."""
    return escape(clean(str(taped)), quote=True)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A heading that ends in `#` is one of numbers. Cells are HTML already."""
    names = list(headings)
    marks = [' class="n"' if name.endswith("#") else "" for name in names]
    top = "".join(
        f'<th scope="col"{mark}>{text(name.rstrip("#"))}</th>'
        for name, mark in zip(names, marks, strict=True)
    )
    lines = (
        "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def fold(summary: str, body: str, *, opened: bool = False) -> str:
    """Both are HTML already."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"
