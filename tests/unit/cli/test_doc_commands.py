"""Every command on our pages: its verb and options exist, and what only reads or marks runs is executed.

Commands that run an agent again (replay, fork, batch) get `--dry-run` here: they find the run, the files and the
steps that they name, and start nothing. `test_newcomer.py`, `test_system_pages.py` and `test_doc_examples.py` run
agents.
"""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from playhead.cli import cli
from playhead.testing import Reply, ToolCall, Usage

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A command in an indented block or after `$` in a console block; a comment after `#` or two spaces.
LINE = re.compile(r"^(?: {4}|\$ )(?:[A-Z_]+=\S+ )*(playhead (?!\[).*)$", re.MULTILINE)
OTHER = re.compile(r"\s+#\s.*$|\s{2,}(?!playhead ).*$")
# Verbs that run no agent, and end.
READING = {
    *("config", "diff", "events", "export", "list", "play", "search", "show", "stats"),
    *("completion", "sql", "verify"),
}
CHANGING = {
    *("accept", "clean", "keep", "note", "promote", "prune", "reindex", "rename", "rm", "scrub"),
    *("seal", "share", "tag", "token", "unseal"),
}
RUNNING = {"batch", "fork", "replay"}
RUNS = ("20261114-071105-aaaa", "20261114-081105-bbbb", "20261115-071105-k3f9")
# Needs a shared store, another program, a run of another page, or a package that is optional.
NOT_HERE = re.compile(
    r"--remote|--follow|--parquet|--sign|/mnt/|\bfix\b|tests/tapes/|--at |-0?712\b|-szhw"
    # Needs reports of shards, a cluster, promoted tests, a date, a server, a recorded server, a token.
    r"|--request |batch merge|--on |batch tests/|since:|share last$|share last --expires 1d$|token revoke"
)


def commands_of(text: str) -> list[str]:
    """Every command of a page, without comments and without what the shell does with its output."""
    lines = LINE.findall(text.replace("\\\n", " "))
    parts = [
        part for line in lines for part in re.split(r"\s{2,}(?=playhead )|; (?=playhead )", line)
    ]
    found = [OTHER.sub("", part).strip() for part in parts]
    return [one for one in found if "…" not in one and "[OPTIONS]" not in one]


PRINTED = {
    str(page.relative_to(ROOT)): commands_of(page.read_text("utf-8"))
    for page in PAGES
    if "design" not in page.parts
}
# The pages of the five systems are executed as printed by `test_system_pages.py`.
HERE = sorted({one for page, lines in PRINTED.items() if "systems/" not in page for one in lines})


def words_of(command: str) -> list[str]:
    """The arguments, up to the first `|`, `>`, `&&` or `||`."""
    words = shlex.split(command, comments=False)[1:]
    stops = [at for at, word in enumerate(words) if word in ("|", ">", "&&", "||", "&")]
    return words[: stops[0]] if stops else words


def test_commands_are_found_with_and_without_comments():
    page = "    playhead show last   a comment\n\n    A=1 playhead tag last x     playhead rm last  # two\n"
    assert commands_of(page) == ["playhead show last", "playhead tag last x", "playhead rm last"]
    assert len(HERE) > 150
    assert sum(map(bool, PRINTED.values())) > 20


def parsed(command: str) -> str:
    """Parse a command as click does; return its verb. Raises UsageError if no such verb, option or argument exists."""
    words = words_of(command)
    context = click.Context(cli, info_name="playhead", **cli.context_settings)
    at: click.Command = cli
    while isinstance(at, click.Group):
        name, at, words = at.resolve_command(context, words)
        context = click.Context(at, info_name=name, parent=context, **at.context_settings)
    if at.name == "batch":  # it passes options of `replay` on
        replay = cli.get_command(context, "replay")
        own = {name for one in at.params for name in one.opts}
        options = [one for one in replay.params if isinstance(one, click.Option)]
        passed = [one for one in options if not own & {*one.opts}]
        at = click.Command("batch", params=[*at.params, *passed])
    _, left, _ = at.make_parser(context).parse_args(args=list(words))
    if left and not context.allow_extra_args:
        raise click.UsageError(f"unexpected arguments {left}")
    return context.command_path.removeprefix("playhead ")


def test_every_command_on_every_page_has_a_verb_and_options_that_exist():
    wrong = {}
    for page, lines in PRINTED.items():
        for command in lines:
            try:
                parsed(command)
            except click.ClickException as error:
                wrong[f"{page}: {command}"] = error.format_message()
    assert wrong == {}


def test_a_wrong_command_is_noticed():
    for command in (
        "playhead shwo",
        "playhead show --cal 3",
        "playhead config a",
        "playhead batch --lvie x",
    ):
        with pytest.raises(click.UsageError):
            parsed(command)


@pytest.fixture
def library(here, forge, store, monkeypatch):
    """`library()`: three runs of this project, the newest with twelve calls, in a store that was not used before."""

    def fill() -> None:
        shutil.rmtree(store, ignore_errors=True)
        for at, name in enumerate(RUNS):
            tape = forge(
                name,
                started=1_794_726_665_000_000_000 + at * 10**9,
                project=str(here),
                cwd=str(here),
                tags={"reviewed": ""},
            )
            turn = tape.turn("respond", "answer the customer")
            for step in range(6):
                call = ToolCall(name="lookup_order", arguments={"order": step})
                reply = Reply(text="rate limit", tool_calls=[call], usage=Usage(input=10, output=2))
                asked = tape.llm("My refund? timeout", reply, parent=turn, took=0.001)
                tape.tool("lookup_order", {"order": step}, value=step, parent=turn, cause=asked)
            tape.turn_end(turn)
            tape.end()

    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    fill()
    return fill


def executed(verbs: set[str]) -> list[list[str]]:
    """The arguments of each command with one of these verbs; the runs A and B have names."""
    found = [words_of(one) for one in HERE if not NOT_HERE.search(one)]
    names = {"A": RUNS[0], "B": RUNS[1]}
    return [[names.get(word, word) for word in words] for words in found if words[0] in verbs]


def dry(words: list[str]) -> list[str]:
    """The same command, but it only says what it would run."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], "--dry-run", *words[at:]]


def failed(ended) -> str | None:
    is_fine = ended.code in (0, None) and "Traceback" not in ended.err
    return None if is_fine else f"exit {ended.code}: {ended.err}"


def test_commands_that_read_succeed(playhead, library):
    found = {shlex.join(words): failed(playhead(*words)) for words in executed(READING)}
    assert len(found) > 40
    assert {words: why for words, why in found.items() if why} == {}


def test_commands_that_change_the_library_succeed(playhead, library):
    found = {}
    for words in executed(CHANGING):
        library()
        asks = words[0] in ("rm", "clean", "prune") and not {"--yes", "--dry-run"} & {*words}
        found[shlex.join(words)] = failed(playhead(*words, *(["--yes"] if asks else [])))
    assert len(found) > 10
    assert {words: why for words, why in found.items() if why} == {}


def test_commands_that_run_an_agent_find_what_they_name(playhead, library, here):
    for name in ("system.txt", "prompts/new.txt"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("Be brief.")
    playhead("tag", RUNS[1], "env=ci", "golden=true")
    found = {shlex.join(words): failed(playhead(*dry(words))) for words in executed(RUNNING)}
    assert len(found) > 15
    assert {words: why for words, why in found.items() if why} == {}
