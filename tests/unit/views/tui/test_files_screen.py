"""The Files screen: the changed files as of a step, and their diffs."""

import pytest

from playhead.views.tui.widgets import LineList

pytestmark = pytest.mark.asyncio


def lines(person, name):
    rows = person.app.screen.query_one(name, LineList).rows
    return [rows.text(at).plain for at in range(len(rows))]


async def open_files(person, *downs):
    await person.press(*downs, "d")
    await person.sees("changed file")


async def test_the_files_are_those_of_the_step_under_the_cursor(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await person.press("slash", *"command=", "enter")
        await open_files(person)
        assert "change 1 of 4" in person.screen()
        assert lines(person, "#files") == ["M app.py +1 −1"]
        assert lines(person, "#diff")[1:4] == [
            " import os",
            "-PORT = 8000",
            "+PORT = 9000  # <script>",
        ]


async def test_arrows_go_through_the_changes(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await open_files(person, "G")
        assert "change 4 of 4" in person.screen()
        assert "mode 644 → 755" in lines(person, "#diff")
        await person.press("left", "left")
        assert "the agent's own code" in person.screen()
        assert lines(person, "#files") == ["M app.py", "A memory.json +1"]
        await person.press("left", "left", "left")
        assert "The files as the run found them." in person.screen()
        assert lines(person, "#diff") == ["Nothing has changed yet."]
        await person.press("right")
        assert lines(person, "#files") == ["M app.py +1 −1"]


async def test_a_file_is_compared_with_the_start_and_shown_whole(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await open_files(person, "G")
        await person.press("v")
        assert "since start" in person.screen()
        assert lines(person, "#diff")[3] == "-PORT = 8000"
        await person.press("v")
        assert lines(person, "#diff")[1] == "2  PORT = 9000  # <script>"


async def test_what_is_not_text_says_why_and_hostile_names_are_text(at_terminal, edited):
    async with at_terminal(edited.path, size=(100, 40)) as person:
        await open_files(person, "G")
        await person.press("left", "home")
        said = {}
        for name in lines(person, "#files"):
            said[name] = " ".join(lines(person, "#diff"))
            await person.press("down")
        assert said["A .env"].startswith("Its content is not on the tape")
        assert said["A logo.bin"].startswith("A binary file.")
        assert said["A cache"].startswith("A folder.")
        assert "+app.py" in said["A run +1"]
        assert said["D notes −1"].endswith("-milk")
        hostile = next(name for name in said if "onerror" in name)
        assert hostile.startswith("A a <img src=x onerror=alert(2)>␛[31m")
        assert "</script>␛[2J" in said[hostile]
        assert "\x1b" not in person.screen()
        assert "\u202e" not in person.screen()
        assert "1 file below .git · 1 change not recorded" in person.screen()


async def test_the_step_of_a_change_is_shown_in_the_run(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await open_files(person, "G")
        await person.press("left", "s")
        tree = person.app.screen.query_one("#tree", LineList)
        assert 'bash(command="odd")' in tree.rows.text(tree.cursor).plain


async def test_the_slider_is_clicked(at_terminal, edited):
    async with at_terminal(edited.path) as person:
        await open_files(person, "G")
        await person.pilot.click("ChangeSlider", offset=(20, 0))
        await person.settled()
        assert "change 1 of 4" in person.screen()


async def test_a_run_without_files_says_so(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("d")
        (notice,) = person.app.notices
        assert notice.startswith("This run changed no files")


async def test_a_store_without_the_blobs_says_so(at_terminal, edited, store):
    for pack in (store / "blobs" / "packs").glob("*.pack"):
        pack.unlink()
    (store / "blobs" / "index.db").unlink(missing_ok=True)
    async with at_terminal(edited.path) as person:
        await open_files(person, "G")
        assert lines(person, "#diff")[0] == "The store does not have this version."
