"""The viewer's static files, and the whole viewer as one file. Knows HTML, ES modules and content security policies.

The policy only allows our own scripts and no connections, whatever a tape contains. For the single file, each ES
module becomes a function that returns its exports. Our modules import with `import { a, b } from "./x.js";` on one
line, export declarations only, and have no import cycles.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

INDEX = "index.html"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_NOWHERE = "base-uri 'none'; form-action 'none'"
# For the pages of a server; frame-ancestors means nothing in a <meta>.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    f"connect-src 'self'; {_NOWHERE}; frame-ancestors 'none'"
)
_STYLES = ("base.css", "run.css", "detail.css", "files.css", "pages.css")
_ENTRY = "app.js"


@cache
def static_files(root_path: str = "") -> Mapping[str, tuple[str, bytes]]:
    """Name below /static/ → (content type, bytes). `index.html` is the page of every address; its addresses begin with
    `root_path`, which the scripts read from it.
    """
    folder = files("playhead.views.web") / "static"
    found = {
        one.name: (_TYPES[one.name.rpartition(".")[2]], one.read_bytes())
        for one in sorted(folder.iterdir(), key=lambda one: one.name)
        if one.name.rpartition(".")[2] in _TYPES
    }
    if root_path:
        media, raw = found[INDEX]
        root = escape(root_path)
        page = raw.decode().replace('"/static/', f'"{root}/static/')
        page = page.replace("<title>", f'<meta name="playhead-root" content="{root}">\n<title>')
        found[INDEX] = media, page.encode()
    return found


def standalone(data: Mapping[str, Any], *, title: str = "Playhead") -> str:
    """Return the viewer and its data in one file.

    Each value becomes a compressed block, which the page unpacks when it is needed. Base64 has no `<`, so a
    block cannot end its script element.
    """
    script, style = _script(), styles()
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        f"img-src data:; {_NOWHERE}"
    )
    blocks = "\n".join(
        f'<script type="text/plain" data-block="{escape(name)}">{_packed(value)}</script>'
        for name, value in data.items()
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"><noscript>This page needs JavaScript; it loads nothing from anywhere.'
        f"</noscript></div>\n{blocks}\n"
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _text(name: str) -> str:
    return static_files()[name][1].decode()


@cache
def styles(names: tuple[str, ...] = _STYLES) -> str:
    """Return the viewer's style sheets, also for the HTML reports."""
    return "\n".join(_text(name) for name in names)


@cache
def _script() -> str:
    return bundle(_ENTRY, _text)


def digest(text: str) -> str:
    """Return the hash by which a policy allows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _packed(value: Any) -> str:
    # Lone surrogates, which a tape may hold, cannot be encoded: escaped they can.
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        content = raw.encode()
    except UnicodeEncodeError:
        content = json.dumps(value, separators=(",", ":"), default=str).encode()
    return base64.b64encode(zlib.compress(content, 7)).decode()


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export) .*$", re.MULTILINE)


def bundle(entry: str, source: Callable[[str], str]) -> str:
    """Return all modules that `entry` needs as one script. `source` returns a module's text by name."""
    parts: list[str] = []
    done: set[str] = set()
    _add(entry, source, parts, done, ())
    return "\n".join(parts)


def _add(
    name: str,
    source: Callable[[str], str],
    parts: list[str],
    done: set[str],
    above: tuple[str, ...],
) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' → '.join((*above, name))}")
    if name in done:
        return
    done.add(name)
    text = source(name)
    for hit in _IMPORT.finditer(text):
        _add(f"{hit[2]}.js", source, parts, done, (*above, name))
    exported = [hit[2] for hit in _EXPORT.finditer(text)]
    text = _IMPORT.sub(lambda hit: f"const {{{hit[1].replace(' as ', ': ')}}} = ${hit[2]};", text)
    text = _EXPORT.sub(r"\1 \2", text)
    if (left := _OTHER.search(text)) is not None:
        raise ValueError(f"{name}: cannot bundle {left[0]!r}")
    stem = name.removesuffix(".js")
    parts.append(f"const ${stem} = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();")
