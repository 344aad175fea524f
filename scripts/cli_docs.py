"""Write docs/cli.md from the commands themselves, or check that it says what they say.

Knows click's tree of commands; not what any verb does.
"""

import difflib
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """\
# The command line

`make docs` generates this page from the commands. A test fails if it is out of date.
"""


def find_group() -> click.Group:
    """The group behind the console script, which may be a function that wraps it."""
    module = importlib.import_module("playhead.cli")
    groups = [one for one in vars(module).values() if isinstance(one, click.Group)]
    if not groups:
        sys.exit("playhead.cli has no click group: nothing to document")
    return groups[0]


def render(group: click.Group, name: str) -> str:
    """The whole page: a table of verbs, then each with its usage, options and words."""
    context = context_of(group, name)
    verbs = list(commands(group, context))
    rows = [(f"`{path}`", one.get_short_help_str(limit=100)) for path, one, _ in verbs]
    parts = [HEAD, table(("verb", "does"), rows), section(name, group, context)]
    parts += [section(*verb) for verb in verbs]
    return "\n".join(parts)


def context_of(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    """As click would make it: the settings of a command decide what its help option is called."""
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def commands(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command that is not hidden, groups before what is in them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        below = context_of(command, name, context)
        yield below.command_path, command, below
        if isinstance(command, click.Group):
            yield from commands(command, below)


def section(path: str, command: click.Command, context: click.Context) -> str:
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"## `{path}`\n", f"    {usage}\n", *paragraphs(command.help or "")]
    records = [param.get_help_record(context) for param in command.get_params(context)]
    # An argument without words of its own stands in the usage line already.
    rows = [(f"`{names}`", words) for names, words in filter(None, records) if words]
    return "\n".join([*parts, table(("option", "meaning"), rows)])


def paragraphs(words: str) -> Iterator[str]:
    r"""A docstring as Markdown: click keeps the lines of a paragraph that starts with \b."""
    for paragraph in inspect.cleandoc(words.partition("\f")[0]).split("\n\n"):
        lines = paragraph.splitlines()
        if lines[:1] == ["\b"]:
            yield "\n".join(f"    {line}" for line in lines[1:]) + "\n"
        elif lines:
            yield paragraph + "\n"


def table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    cells = [head, ("---", "---"), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |\n"
        for row in cells
    )


def main() -> None:
    """Write the page; with `--check`, compare and exit 1 with the difference."""
    page = render(find_group(), "playhead")
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
        return
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    difference = difflib.unified_diff(
        written.splitlines(), page.splitlines(), "docs/cli.md", "the commands", lineterm=""
    )
    if told := "\n".join(difference):
        sys.exit(f"{told}\n\ndocs/cli.md is out of date. Update it: make docs")


if __name__ == "__main__":
    main()
