"""The frame of a page, and taped text made fit for it. Knows HTML and the viewer's style; nothing of runs."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from playhead.events import BOUNDARIES
from playhead.views.text.safe import clean
from playhead.views.web.viewer_files import digest, styles

# The viewer fills a window and scrolls inside of it; a report is as long as it is, also on paper.
_OWN = """
html, body, #app { height: auto; min-height: 100%; }
.page { overflow: visible; }
.aligned-body > * + * { margin-top: 6px; }
.page:has(#only:checked) .step-same { display: none; }
summary.diff-fold { text-align: center; cursor: pointer; list-style: none; }
li:target { outline: 2px solid var(--accent); outline-offset: -1px; }
@media print {
  .aligned-bar { display: none; }
  .diff, .terminal { max-height: none; }
  details:not([open]) { break-inside: avoid; }
}
"""
_STYLES = ("base.css", "detail.css", "pages.css")
_ICON = (
    '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">'
    '<path d="M2.5 5v6M5.5 3v10M8.5 6v4M11.5 4v8M14 7v2"/></svg>'
)


def page(title: str, kind: str, body: Iterable[str]) -> str:
    """Return a whole page; `body` is HTML. Its policy forbids scripts and downloads, whatever a tape contains."""
    style = f"{styles(_STYLES)}{_OWN}"
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)} · Playhead</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app">\n<a class="skip-link" href="#main">To the content</a>\n'
        f'<div class="topbar" role="banner"><span class="brand">{_ICON}<span>Playhead</span></span>'
        f'<span class="nav">{kind}</span></div>\n<main class="page" id="main">\n'
        + "\n".join(body)
        + "\n</main>\n</div>\n</body>\n</html>\n"
    )


def text(taped: object) -> str:
    """Escape untrusted text: no markup, no characters that hide or reorder text."""
    return escape(clean(str(taped)), quote=True)


def head(title: str, *told: str) -> str:
    """All of it HTML already."""
    return f'<div class="page-head"><h1>{title}</h1>{"".join(told)}</div>'


def table(look: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A heading that ends in `#` is one of numbers, in `?` one that a narrow screen can do without. Cells
    are HTML already.
    """
    names = list(headings)
    marks = [_mark(name) for name in names]
    top = "".join(
        f'<th scope="col"{mark}>{text(name.rstrip("?#"))}</th>'
        for name, mark in zip(names, marks, strict=True)
    )
    lines = (
        "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row, marks, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    head_of = f"<thead><tr>{top}</tr></thead>"
    return f'<div class="wide"><table class="{look}">\n{head_of}\n<tbody>\n{body}</tbody>\n</table></div>'


def _mark(name: str) -> str:
    looks = [*(["n"] if "#" in name[-2:] else []), *(["extra"] if "?" in name[-2:] else [])]
    return f' class="{" ".join(looks)}"' if looks else ""


def fold(summary: str, body: str, *, look: str = "", opened: bool = False) -> str:
    """Both are HTML already."""
    named = f' class="{look}"' if look else ""
    return (
        f"<details{named}{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"
    )


def boundary_mark(boundary: str) -> str:
    """Return the coloured dot of a boundary; an unknown one has the dot of a note."""
    known = boundary if boundary in BOUNDARIES else "note"
    return f'<span class="mark mark-{"tool" if known == "mcp" else known}"></span>'
