"""What somebody at a terminal sees, and what the keys do."""

import os

import pytest

from playhead.library.annotate import keep_run
from playhead.tape.manifest import read_manifest
from playhead.testing import Reply
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.widgets import LineList, folded

pytestmark = pytest.mark.asyncio


def under_cursor(person, name="#tree"):
    lines = person.app.screen.query_one(name, LineList)
    return lines.rows.text(lines.cursor).plain


async def test_the_list_shows_runs_newest_first_with_how_they_ended(at_terminal, refund, quiet):
    async with at_terminal() as person:
        rows = person.rows()
        assert "2 runs" in rows[0]
        assert rows[2].startswith("✓ 20261115-081105-aaaa")
        assert rows[3].startswith("✗ 20261115-071105-k3f9")
        for key in ("Open", "Search", "Sort", "Tag", "Delete", "Export", "Browser", "Copy", "Quit"):
            assert key in rows[-1]


async def test_an_empty_store_says_how_to_record(at_terminal):
    async with at_terminal() as person:
        assert "playhead record" in person.screen()


async def test_the_filter_goes_through_the_ways_in_which_runs_end(at_terminal, refund, quiet):
    async with at_terminal() as person:
        await person.press("f")
        assert "1 run · failed" in person.screen()
        assert "20261115-081105-aaaa" not in person.screen()
        await person.press("f", "f", "f", "f")
        assert "2 runs" in person.screen()


async def test_runs_are_found_by_what_is_in_them(at_terminal, refund, quiet):
    async with at_terminal() as person:
        await person.press("slash", *"refund", "enter")
        await person.sees("“refund”")
        assert "20261115-071105-k3f9" in person.screen()
        await person.press("slash", *["backspace"] * 6, *"zebra", "enter")
        await person.sees("No run matches.")


async def test_a_run_that_begins_appears_and_its_end_is_seen(at_terminal, forge):
    async with at_terminal() as person:
        tape = forge("fresh", pid=os.getpid())
        await person.sees("● fresh")
        tape.end()
        await person.sees("✓ fresh")


async def test_a_run_opens_with_its_tree_and_the_line_under_the_cursor_in_full(at_terminal, refund):
    async with at_terminal() as person:
        await person.press("enter")
        screen = person.screen()
        assert "failed after 3.1 s" in screen
        assert "last completed seam: looked up" in screen
        await person.press("down")
        assert "who      refund-agent, lane main" in person.screen()
        assert "anthropic.messages claude-sonnet-4-5" in person.screen()
        await person.press("escape")
        assert "1 run" in person.screen()


async def test_f_goes_to_the_call_that_failed_first(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("f")
        assert "#3 tool issue_refund" in under_cursor(person)
        assert "ended    raised: ValueError: too late" in person.screen()


async def test_what_is_below_a_line_is_folded_and_unfolded(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        before = person.app.screen.query_one("#tree", LineList).rows
        whole = len(before)
        await person.press("left")
        assert len(before) == 1
        assert under_cursor(person).endswith(f"+{whole - 1}")
        await person.press("right")
        assert len(before) == whole
        await person.press("end", "left", "left")
        assert "turn respond" in under_cursor(person)


async def test_lines_are_found_one_after_the_other_around_the_end(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("slash", *"order", "enter")
        assert "#2 tool lookup_order" in under_cursor(person)
        await person.press("n")
        assert "#3 tool issue_refund" in under_cursor(person)
        await person.press("n")
        assert "#2 tool lookup_order" in under_cursor(person)


async def test_the_detail_fills_the_screen_when_it_is_zoomed(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("down", "z")
        assert "├" not in person.screen()
        assert "You are the refund agent of a shop." in person.screen()
        await person.press("z")
        assert "├" in person.screen()


async def test_a_run_that_goes_on_grows_before_the_eyes(at_terminal, forge):
    tape = forge(pid=os.getpid())
    async with at_terminal(tape.path) as person:
        await person.sees("running")
        tape.tool("lookup_order", {"order": 1}, value=2)
        await person.sees("#1 tool lookup_order")
        tape.end()
        await person.sees("ok after")


async def test_a_run_is_played_by_the_clock_and_by_the_keys(at_terminal, refund):
    now = [0]
    async with at_terminal(refund.path, now_ns=lambda: now[0]) as person:
        await person.press("p")
        assert "I look it up." not in person.screen()
        now[0] = 2_050_000_000
        await person.sees("I look it up.")
        assert "issue_refund" not in person.screen()
        await person.press("space", "plus", "plus")
        await person.sees("‖")
        assert "4×" in person.screen()
        await person.press("f")
        await person.sees("too late")
        await person.press("0")
        assert "issue_refund" not in person.screen()
        await person.press("end")
        await person.sees("■ 00:03.1 / 00:03.1")


async def test_a_click_on_the_scrubber_goes_there(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        await person.press("p", "space")
        await person.pilot.click("Scrubber", offset=(79, 0))
        await person.settled()
        assert "too late" in person.screen()


async def test_two_runs_are_compared_step_by_step(at_terminal, refund, quiet):
    async with at_terminal() as person:
        await person.press("c")
        await person.press("m", "down", "c")
        screen = person.screen()
        assert "20261115-081105-aaaa ↔ 20261115-071105-k3f9" in screen
        assert "~ trajectories differ · 1 changed, 2 added" in screen
        assert '-{"paid": false}' in screen
        await person.press("n", "n")
        assert "lookup_order" in under_cursor(person, "#steps")
        await person.press("x")
        await person.sees("20261115-071105-k3f9 ↔ 20261115-081105-aaaa")


async def test_what_is_on_a_tape_is_shown_as_text_and_never_obeyed(at_terminal, forge):
    tape = forge(name="[bold red]name[/] \x1b[2J", tags={"k": "[link=x]\x1b]0;t\x07"})
    turn = tape.turn("[blink]turn[/blink]", "\x1b[31mred")
    tape.tool("rm\x1b[1A", {"[on red]": "[/]"}, error=ValueError("[@click=quit]x[/]\x1b[H"))
    tape.turn_end(turn)
    tape.end("failed", ValueError("[reverse]\x9b31m"))
    async with at_terminal() as person:
        assert "[bold red]name[/] ␛[2J"[:12] in person.screen()
        await person.press("enter", "f")
        screen = person.screen()
        assert "[@click=quit]x[/]␛[H" in screen
        assert "[blink]turn[/blink]" in screen
        assert "[reverse]\\x9b31m" in screen
        await person.press("p", "end")
        assert "\x1b" not in person.screen()


async def test_every_key_is_told_on_request(at_terminal, refund):
    async with at_terminal(refund.path) as person:
        for key in ("question_mark", "escape"):
            await person.press("question_mark")
            assert "the previous one" in person.screen()
            await person.press(key)
            assert "the previous one" not in person.screen()
            assert "issue_refund" in person.screen()


async def test_runs_are_sorted_tagged_and_deleted_after_a_yes(at_terminal, refund, quiet):
    async with at_terminal() as person:
        await person.press("s")
        await person.sees("by cost")
        assert person.rows()[2].startswith("✗ 20261115-071105-k3f9")
        await person.press("home", "t", *"reviewed", "enter")
        assert read_manifest(refund.path).tags == {"env": "ci", "reviewed": "true"}
        assert notices(person) == ["Tags: env=ci, reviewed=true."]
        await person.press("t", *"-nope", "enter")
        assert "has no tag 'nope'" in notices(person)[-1]
        await person.press("x")
        assert notices(person) == []
        assert "⏎ OK" in person.rows()[-1]
        assert "esc Cancel" in person.rows()[-1]
        await person.press("escape")
        await person.press("x", *"no", "enter")
        assert refund.path.exists()
        await person.press("x", *"yes", "enter")
        await person.sees("1 run")
        assert not refund.path.exists()
        assert notices(person) == [f"Deleted {refund.path.name}."]


def notices(person):
    return person.app.notices


async def test_the_details_of_a_step_and_the_id_of_a_run_are_copied(at_terminal, refund):
    async with at_terminal() as person:
        await person.press("y")
        assert person.app.clipboard == refund.path.name
        await person.press("enter", "f", "y")
        assert person.app.clipboard.startswith("#3 tool issue_refund(order=4711)")
        assert "ended    raised: ValueError: too late" in person.app.clipboard


async def test_an_export_that_fails_returns_the_reason(store, refund, tmp_path):
    source = RunSource(store)
    assert "No such file" in source.export(refund.path.name, str(tmp_path / "no" / "page.html"))
    assert source.export(refund.path.name, str(tmp_path / "page.html")) == ""


async def test_a_run_that_is_kept_is_not_deleted_and_the_reason_is_shown(at_terminal, refund):
    keep_run(refund.path, keep=True)
    async with at_terminal() as person:
        await person.press("x", *"yes", "enter")
        assert notices(person) == ["20261115-071105-k3f9 is kept or golden, and is not deleted."]
        assert refund.path.exists()


async def test_a_tape_that_cannot_be_read_is_said(at_terminal, refund):
    (refund.path / "manifest.json").write_text('{"run": "x", "format": 9999}')
    async with at_terminal(refund.path) as person:
        assert "format 9999" in person.screen()


async def test_f_says_how_the_program_ended_if_no_step_failed(at_terminal, forge):
    tape = forge("20261115-071105-k3f9")
    tape.llm("What should I wear?", Reply(text="A coat."))
    tape.end("failed", RuntimeError("the weather station is down"))
    async with at_terminal(size=(100, 30)) as person:
        await person.press("enter", "f")
        said = "No step failed. The program ended with RuntimeError: the weather station is down"
        assert notices(person) == [said]


async def test_a_text_with_arrows_and_wide_characters_uses_the_whole_width():
    lines = folded('inside #5 tool search(query="late") → ["one", "two"] ' * 4, 60)
    assert all(50 <= line.cell_len <= 60 for line in lines[:-1])
    assert {line.cell_len for line in folded("漢字" * 30, 20)} == {20}
