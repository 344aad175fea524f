"""The documentation says what the program does: every verb, every option, no dead link."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "cli_docs.py"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

spec = importlib.util.spec_from_file_location("cli_docs", SCRIPT)
cli_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cli_docs)


@pytest.fixture(scope="module")
def group() -> click.Group:
    return cli_docs.find_group()


def test_the_page_on_the_command_line_says_what_the_commands_say():
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_every_verb_and_option_is_documented(group):
    page = cli_docs.PAGE.read_text(encoding="utf-8")
    context = cli_docs.context_of(group, "playhead")
    verbs = [("playhead", group, context), *cli_docs.commands(group, context)]
    assert len(verbs) > 1
    for path, command, below in verbs:
        told = page.partition(f"## `{path}`\n")[2].partition("\n## ")[0]
        assert told, f"{path} is not on the page"
        for param in command.get_params(below):
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"{path} {param.opts} says nothing"
                assert all(name in told for name in param.opts), f"{path} {param.opts}"


def test_every_verb_says_what_it_does(group):
    context = cli_docs.context_of(group, "playhead")
    silent = [path for path, command, _ in cli_docs.commands(group, context) if not command.help]
    assert silent == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [one for one in targets if one and not re.match(r"[a-z]+:", one)]
    assert [one for one in local if not (page.parent / one).exists()] == []


def test_the_site_lists_every_page():
    folder = ROOT / "docs"
    listed = set(
        re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    )
    pages = {str(page.relative_to(folder)) for page in folder.rglob("*.md")}
    assert listed == {page for page in pages if not page.startswith("design/")}


def test_every_file_on_the_map_exists():
    text = (ROOT / "docs" / "design" / "001-map.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert len(named) > 60
    package = ROOT / "src" / "playhead"
    missing = [one for one in named if not (package / one).exists() and not (ROOT / one).exists()]
    assert missing == []


def test_the_index_lists_every_design_note():
    folder = ROOT / "docs" / "design"
    text = (folder / "README.md").read_text(encoding="utf-8")
    notes = [path.name for path in sorted(folder.glob("[0-9]*.md"))]
    assert [name for name in notes if f"({name})" not in text] == []


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def toy() -> None:
    """A toy."""


@toy.command()
@click.argument("tape")
@click.option("--fast/--slow", default=False, help="With or without | pauses.")
@click.option("--secret", hidden=True)
def play(tape: str, fast: bool, secret: str) -> None:
    """Play a tape.

    \b
    toy play last
    toy play last~2
    """


@toy.command(hidden=True)
def innards() -> None:
    """Not for people."""


def test_a_page_holds_usage_words_examples_and_options():
    page = cli_docs.render(toy, "toy")
    assert "| `toy play` | Play a tape. |" in page
    assert "    toy play [OPTIONS] TAPE\n" in page
    assert "    toy play last\n    toy play last~2\n" in page
    assert "| `-h, --help` |" in page
    assert "| `TAPE` |" not in page
    assert "| `--fast / --slow` | With or without \\| pauses. |" in page


def test_what_is_hidden_stays_off_the_page():
    page = cli_docs.render(toy, "toy")
    assert "innards" not in page
    assert "--secret" not in page


def test_every_test_that_the_table_of_the_five_systems_names_exists():
    table = (ROOT / "docs" / "design" / "023-five-systems.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", table))
    root = Path(__file__).parents[1]
    written = "".join(path.read_text(encoding="utf-8") for path in root.rglob("test_*.py"))
    assert len(named) > 50
    assert sorted(name for name in named if f"def {name}(" not in written) == []
