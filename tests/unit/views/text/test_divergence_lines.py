"""A divergence in words: one line for lists, some lines for a report, the message of a failing test."""

import pytest

from playhead import events
from playhead.story import tell
from playhead.tape.reader import Tape
from playhead.testing import explain
from playhead.views.text.divergence_lines import divergence_lines, divergence_title
from playhead.views.text.tree import tree_lines
from playhead.views.tui.run_lines import TreeRows, item_lines

MISSED = {
    "kind": "missed",
    "step": 2,
    "boundary": "process",
    "name": "printf",
    "lane": "main/1",
    "at": "echo.py:6 one",
    "nearest": {
        "number": 7,
        "name": "printf",
        "differences": [{"path": "argv[1]", "taped": "Paris \x1b[31m", "asked": "Lyon"}],
    },
    "advice": "Re-record with `playhead record`, or let this boundary go live: `--live process`.",
}
UNUSED = {"kind": "unused", "step": 3, "boundary": "llm", "name": "claude", "lane": "main"}
OUTPUT = {"kind": "output", "detail": "stdout differs at line 4"}


def test_a_title_says_what_differs():
    assert divergence_title(MISSED) == "no taped call matches step 2: process printf"
    assert divergence_title(UNUSED) == "taped call 3 was never made: llm claude"
    assert divergence_title(OUTPUT) == "stdout differs at line 4"
    assert divergence_title({}) == "the replay differs from its tape"


@pytest.mark.parametrize("width", [40, 60, 120])
def test_lines_fit_and_continue_below_their_first_column(width):
    lines = [line.plain for line in divergence_lines(MISSED, width, number=1)]
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("1. no taped call matches")
    assert all(line.startswith("   ") for line in lines[1:])
    text = " ".join(" ".join(lines).split())
    assert "called at echo.py:6 one, lane main/1" in text
    assert "nearest is taped call 7: printf argv[1] - Paris ␛[31m + Lyon Re-record" in text


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("agent.py:6", "called at agent.py:6"),
        ("curl/8.5.0", "called by curl/8.5.0"),
        (None, "unknown place"),
    ],
)
def test_the_place_of_a_call_is_code_or_the_client_of_the_proxy(at, said):
    lines = [line.plain for line in divergence_lines({**MISSED, "at": at}, 80)]
    assert said in " ".join(lines)


def test_advice_that_was_given_before_is_left_out():
    lines = [line.plain for line in divergence_lines(MISSED, 80, number=2, advice=False)]
    assert "Re-record" not in " ".join(lines)


def test_the_message_of_a_failing_test_is_the_report_in_words():
    report = {
        "verdict": "diverged",
        "run": "20261115-071105-k3f9",
        "divergences": [MISSED, {**UNUSED, "consequence": True}, OUTPUT, OUTPUT, OUTPUT],
    }
    text = explain(report)
    assert text.startswith("diverged: replay of 20261115-071105-k3f9\n\n1. no taped call matches")
    assert "{" not in text
    assert "never made" not in text
    assert text.endswith("… and 1 more")


@pytest.fixture
def replayed(forge):
    tape = forge()
    tape.tool("lookup_order", {"order": 4711}, value=1)
    tape.event(events.DIVERGENCE, MISSED)
    tape.end("failed")
    return tell(Tape(tape.path))


def test_the_tree_of_a_replay_shows_a_divergence_in_words(replayed):
    shown = [
        line for line in tree_lines(replayed) if getattr(line.item, "kind", "") == "divergence"
    ]
    assert len(shown) == 1
    rows = TreeRows(replayed)
    rows.fit(100)
    at = rows.next_failure(0)
    assert rows.text(at).plain.rstrip() == "divergence no taped call matches step 2: process printf"
    detail = "\n".join(line.plain for line in item_lines(replayed, rows.item(at), 60))
    assert "nearest is taped call 7: printf" in detail
    assert "+ Lyon" in detail
    assert '"kind"' not in detail
