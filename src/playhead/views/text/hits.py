"""What a search has found: each run on a line, the words that were found below it. Knows pages."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead.library.fulltext import Snippet
from playhead.library.search import Found, Page
from playhead.views.text import words
from playhead.views.text.console import GLYPHS, console, print_line, width_of
from playhead.views.text.safe import clean, one_line

_MARGIN = 11


def print_hits(page: Page, *, now_ns: int, everywhere: bool) -> None:
    out = console()
    if not page.rows:
        elsewhere = "" if everywhere else " in this project (--all: of all projects)"
        out.print(f"Nothing was found{elsewhere}.")
        return
    for found in page.rows:
        for line in hit_lines(found, now_ns, width_of(out)):
            print_line(out, line)
    left = page.total - len(page.rows)
    noun = "run" if page.total == 1 else "runs"
    more = f", the first {len(page.rows)} shown (--limit)" if left > 0 else ""
    out.print(Text(f"{words.count(page.total)} {noun}{more}", style="quiet"))


def hit_lines(found: Found, now_ns: int, width: int) -> Iterator[Text]:
    entry, manifest = found.entry, found.entry.manifest
    facts = [f"{words.age(manifest.started_ns, now_ns)} ago"]
    if found.summary.cost_usd is not None:
        facts.append(words.money(found.summary.cost_usd))
    if found.models:
        facts.append(one_line(found.models[0], 40))
    head = Text.assemble(
        (f"{GLYPHS[entry.status]} ", entry.status),
        f"{one_line(entry.id, 60)}  ",
        (one_line(manifest.name, 40), "name"),
        (f"  {' · '.join(facts)}", "quiet"),
    )
    head.truncate(width, overflow="ellipsis")
    yield head
    for snippet in found.snippets:
        yield Text.assemble((f"  {snippet.scope:<{_MARGIN - 2}}", "quiet"), _shown(snippet, width))


def _shown(snippet: Snippet, width: int) -> Text:
    """The words that were found stand out. Hits are counted in the text as it was, so pieces of it are
    made safe one by one.
    """
    line = Text()
    at = 0
    for start, end in snippet.hits:
        line.append(clean(snippet.text[at:start]))
        line.append(clean(snippet.text[start:end]), style="bold yellow")
        at = end
    line.append(clean(snippet.text[at:]))
    first = len(clean(snippet.text[: snippet.hits[0][0]])) if snippet.hits else 0
    room = width - _MARGIN
    if line.cell_len > room and first > room // 2:
        line = Text("…").append_text(line[first - room // 3 :])
    line.truncate(room, overflow="ellipsis")
    return line
