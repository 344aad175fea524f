"""The package root exports few names; to change them is a decision, made here."""

import inspect
from importlib.metadata import version

import pytest
from mypy import api as mypy

import playhead

SURFACE = [
    "Divergence",
    "PlayheadError",
    "Run",
    "Turn",
    "__version__",
    "current",
    "lane",
    "load",
    "on_event",
    "record",
    "replay_session",
    "replay_worker",
    "retrieval",
    "seam",
    "tap",
    "tool",
    "turn",
    "watch",
]


def test_the_root_exports_these_names_and_no_others():
    assert sorted(playhead.__all__) == SURFACE


def test_the_root_exports_at_most_twenty_names():
    assert len(playhead.__all__) <= 20


def test_every_exported_name_is_there():
    assert [name for name in playhead.__all__ if getattr(playhead, name, None) is None] == []


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(playhead, "no_such_name")


def test_the_version_of_the_package_is_the_one_that_was_installed():
    assert playhead.__version__ == version("playhead")


FUNCTIONS = {
    "current": "()",
    "lane": "(name)",
    "load": "(run, *, store=None)",
    "on_event": "(run=None, *, who=None, why=None)",
    "record": (
        "(function=None, /, *, name=None, tags=None, details=None, level=None, store=None, run_id=None, resume=False, "
        "force=False, redact=None, enabled=None, intercept=False)"
    ),
    "replay_session": "(session, function, *, fenced=True)",
    "replay_worker": "(session, worker, function, *, fenced=True)",
    "retrieval": "(sources)",
    "seam": "(name, data=None)",
    "tap": "(owner, name='emit', *, run=None, who=None, why=None)",
    "tool": "(function=None, /, *, effect=None, name=None)",
    "turn": "(name, *, purpose=None, input=None)",
    "watch": "(store, snapshot=None, mutations=(), *, name=None)",
}


@pytest.mark.parametrize(("name", "signature"), FUNCTIONS.items())
def test_an_ide_completes_every_parameter(name, signature):
    found = inspect.signature(getattr(playhead, name))
    bare = [one.replace(annotation=one.empty) for one in found.parameters.values()]
    assert str(inspect.Signature(bare)) == signature


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_a_type_and_none_is_collected_unseen(name):
    parameters = inspect.signature(getattr(playhead, name)).parameters.values()
    assert [one.name for one in parameters if one.annotation is one.empty] == []
    assert {one.kind for one in parameters}.isdisjoint({inspect.Parameter.VAR_KEYWORD})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_documentation_has_an_example_and_names_every_parameter(name):
    function = getattr(playhead, name)
    text = inspect.getdoc(function)
    assert f"playhead.{name}" in text
    named = [
        one for one in inspect.signature(function).parameters if one not in ("function", "name")
    ]
    assert [one for one in named if one not in text] == []


def test_a_run_that_is_not_recorded_takes_the_same_arguments():
    from playhead.recording.runs import NoRun

    for name in ("emit", "turn", "seam", "end"):
        ours, theirs = (inspect.signature(getattr(one, name)) for one in (NoRun, playhead.Run))
        assert list(ours.parameters.values()) == list(theirs.parameters.values())


TYPED = """
import playhead
from playhead import Run

with playhead.record(name="nightly", tags={"a": "b"}, level="full", intercept=True) as run:
    run.emit("kind", {"a": 1}, why="because")
    with run.turn("respond", purpose="p", input=1) as turn:
        turn.seam("analyse")

@playhead.record
def plain(number: int) -> str: return str(number)

@playhead.tool(effect="read")
async def search(query: str) -> list[str]: return [query]

reveal_type(plain)
reveal_type(search)
reveal_type(playhead.load("last").workers)
playhead.record(nmae="typo")
playhead.tool(effect="none")
playhead.turn(7)
"""


def test_a_type_checker_knows_what_the_names_are_and_finds_mistakes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TYPED)
    told, _, _ = mypy.run(
        [str(program), "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    )
    told = told.replace("builtins.", "").replace("typing.", "")  # versions of mypy differ
    lines = [
        line.partition(": ")[2]
        for line in told.splitlines()
        if ": error:" in line or "Revealed" in line
    ]
    assert [line for line in lines if "Revealed" in line] == [
        'note: Revealed type is "def (number: int) -> str"',
        'note: Revealed type is "def (query: str) -> Coroutine[Any, Any, list[str]]"',
        'note: Revealed type is "list[str]"',
    ]
    assert len([line for line in lines if "error:" in line]) == 3, told
