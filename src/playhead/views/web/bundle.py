"""Our ES modules as one script. Knows the little of JavaScript's modules that ours use. Pure.

Each module becomes a function that returns what it exports, so that names never meet. Ours import
with `import { a, b } from "./x.js";` on one line, export declarations only, and make no circles.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export) .*$", re.MULTILINE)


def bundle(entry: str, source: Callable[[str], str]) -> str:
    """`source` gives the text of a module by its name."""
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
