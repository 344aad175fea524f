"""Each screen as it looks, letter by letter and colour by colour, on the smallest terminal and on a
wide one. `PLAYHEAD_UPDATE_SCREENS=1` takes what is seen as what is meant; look at it before you do.
"""

import os
from pathlib import Path

import genai_prices
import pytest

from playhead.views.text.console import PALETTE

pytestmark = pytest.mark.asyncio

SCREENS = Path(__file__).parent / "screens"
# A letter for each colour that means something; the others are the framework's own.
PAINT = {"failed": "F", "ok": "O", "interrupted": "I", "running": "R", "quiet": "q", "llm": "L"}
PAINT |= {"asked": "a", "money": "M"}
LETTERS = {PALETTE.styles[name].color.triplet: letter for name, letter in PAINT.items()}


def painted(person):
    """The letters, and below them the colour of each."""
    rows, paint = [], []
    for strip in person.app.screen._compositor.render_strips():
        rows.append("".join(segment.text for segment in strip).rstrip())
        colours = "".join(letter_of(segment) * len(segment.text) for segment in strip)
        paint.append(colours.rstrip(". "))
    return "\n".join([*rows, "", *paint]).rstrip() + "\n"


def letter_of(segment):
    colour = segment.style.color if segment.style else None
    if not segment.text.strip():
        return " "
    return "." if colour is None else LETTERS.get(colour.triplet, ".")


def compare(person, name):
    seen, file = painted(person), SCREENS / f"{name}.txt"
    # The list of prices has a release every few days.
    seen = seen.replace(f"genai-prices {genai_prices.__version__}", "genai-prices VERSION")
    if os.environ.get("PLAYHEAD_UPDATE_SCREENS"):
        SCREENS.mkdir(exist_ok=True)
        file.write_text(seen, encoding="utf-8")
    assert seen == file.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def at_home(store, monkeypatch):
    """The store has the same name wherever the tests run."""
    monkeypatch.setattr(Path, "home", lambda: store.parent)


async def test_the_list_of_runs(at_terminal, refund, quiet, forge):
    forge("20261115-091105-bbbb", name="killed", started=1_794_733_865_000_000_000)
    async with at_terminal() as person:
        await person.press("down", "m", "down")
        compare(person, "runs")


async def test_a_run(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("f")
        compare(person, "run")


async def test_a_run_where_there_is_room(at_terminal, refund):
    async with at_terminal(refund.path, size=(132, 36)) as person:
        await person.press("down")
        compare(person, "run-wide")


async def test_a_run_being_played(at_terminal, refund):
    async with at_terminal(refund.path, now_ns=lambda: 0) as person:
        await person.press("p", "space", "f")
        compare(person, "play")


async def test_two_runs_compared(at_terminal, refund, quiet):
    async with at_terminal() as person:
        await person.press("m", "down", "c", "n")
        compare(person, "compare")


async def test_the_files_of_a_run(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await person.press("G", "d")
        await person.sees("changed files")
        compare(person, "files")


async def test_the_files_of_a_run_where_there_is_room(at_terminal, edited):
    async with at_terminal(edited.path, size=(132, 30)) as person:
        await person.press("G", "d", "left")
        await person.sees("changed files")
        compare(person, "files-wide")
