import json
import os
import re
import subprocess
import sys

import pytest

from playhead.testing import Failure, Reply, ToolCall, Usage

NASTY = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202egnirts\u2066 end"


@pytest.fixture
def refund(forge):
    """A run that fails after it has got over one failure already."""
    tape = forge(tags={"env": "ci"})
    tape.event("hook", {"boundary": "http", "library": "httpx"})
    turn = tape.turn("act", "issue the refund", {"ticket": 4711})
    asked = tape.llm(
        "Please refund order A-1009.",
        Reply(
            text="Let me look at the order.",
            tool_calls=[ToolCall(name="lookup", arguments={"order": "A-1009"})],
            usage=Usage(input=412, output=96, cache_read=2048),
        ),
        took=1.8,
        parent=turn,
    )
    tool = tape.call("tool", "lookup", {"arguments": {"order": "A-1009"}}, parent=turn, cause=asked)
    http = tape.call(
        "http", "GET shop/orders", {"method": "GET", "url": "http://shop"}, parent=tool
    )
    tape.now += 0.09
    tape.head(http, 200)
    tape.outcome(http, status=200)
    tape.outcome(tool, value={"total": 49.9})
    tape.seam(turn, "looked up")
    tape.tool("pay", {"amount": 49.9}, error=TimeoutError("no answer in 2.0 s"), parent=turn)
    tape.llm("Again?", Reply(error=Failure(status=529)), took=0.4, parent=turn)
    tape.seam(turn, "tried to pay", {"times": 1})
    tape.turn_end(turn, error=KeyError("customer"))
    tape.end("failed", KeyError("customer"))
    return tape


def test_a_failed_run_says_first_why_it_failed_and_how_far_it_had_come(refund, store, playhead):
    lines = playhead("show", "last", "--store", store).out.splitlines()
    assert lines[0] == "✗ refund-agent  20261115-071105-k3f9  failed after 2.4 s"
    assert lines[1] == "  KeyError: 'customer'"
    assert lines[2] == "  at refund_agent.py:57 issue_refund"
    assert lines[3] == "  turn act failed; last completed seam: tried to pay"


def test_what_was_done_stands_under_what_asked_for_it(refund, store, playhead):
    out = playhead("show", "last", "--store", store).out
    tree = out.partition("\n\n")[2].partition("\n\n")[0]
    assert tree.splitlines() == [
        "turn act · issue the refund                                                2.4 s",
        "├ #1 llm claude-sonnet-4-5                             2,460→96  $0.0033   1.8 s",
        "│ │ ‹ Please refund order A-1009.",
        "│ │ › Let me look at the order.",
        '│ └ #2 tool lookup(order="A-1009") → {"total": 49.9}                       90 ms',
        "│   └ #3 http GET shop/orders → 200                                        90 ms",
        "├ ◆ looked up                                                             +1.9 s",
        "├ #4 tool pay(amount=49.9)                                                 0.1 s",
        "│   ✗ TimeoutError: no answer in 2.0 s",
        "├ #5 llm claude-sonnet-4-5                                                 0.4 s",
        "│   ‹ Again?",
        "│   ✗ 529 overloaded_error: Overloaded",
        '├ ◆ tried to pay {"times": 1}                                             +0.5 s',
        "└ ✗ KeyError: 'customer'",
    ]


def test_the_end_says_what_it_came_to_and_which_calls_failed(refund, store, playhead):
    foot = playhead("show", "last", "--store", store).out.rpartition("\n\n")[2].splitlines()
    assert foot[0] == f"5 calls · 2 LLM · 2 tools · 1 HTTP · {refund.seq} events"
    assert foot[1] == "2,460 tokens in (2,048 from cache), 96 out · $0.0033"
    assert foot[2] == "2 calls failed: #4, #5"


def test_a_killed_run_names_what_was_in_flight(forge, store, playhead):
    tape = forge()
    turn = tape.turn("act")
    tape.seam(turn, "decided")
    tape.call("tool", "pay", {"arguments": {"amount": 49.9}}, parent=turn)
    out = playhead("show", "last", "--store", store).out
    assert "◐ refund-agent" in out
    assert "turn act was under way; last completed seam: decided" in out
    assert "in flight at the end: #1 tool pay" in out
    assert re.search(r"#1 tool pay\(amount=49\.9\) … never answered +in flight", out)


def test_a_run_that_went_well_is_not_said_to_have_failed_because_a_turn_did(forge, store, playhead):
    tape = forge()
    turn = tape.turn("first try")
    tape.turn_end(turn, error=ValueError("no"))
    tape.end()
    out = playhead("show", "last", "--store", store).out
    assert "failed;" not in out
    assert out.splitlines()[1].startswith("  1 turn failed: first try (event ")
    assert out.splitlines()[2] == "  python refund_agent.py"
    assert "└ ✗ ValueError: no" in out
    (row,) = json.loads(playhead("list", "--json", "--store", store).out)
    assert row["failure"] is None


def test_a_command_that_leaves_with_a_code_is_explained_by_its_last_words(forge, store, playhead):
    tape = forge()
    tape.event("output", {"stream": "stderr", "text": "loading\nfatal: no such model\n"})
    tape.event("run.end", {"status": "failed", "exit_code": 3, "took_ns": 5})
    assert "exit code 3: fatal: no such model" in playhead("show", "last", "--store", store).out


def test_a_call_is_shown_with_the_five_questions_and_all_it_said(refund, store, playhead):
    out = playhead("show", "last", "--call", "2", "--store", store).out
    assert re.search(r"who +refund-agent, lane main", out)
    assert re.search(r"what +tool lookup", out)
    assert re.search(r"when +\d\d:\d\d:06\.\d+, 00:01\.8 into the run, took 90 ms", out)
    assert re.search(r"where +refund_agent\.py:42 respond", out)
    assert re.search(r"why +asked for by #1 llm claude-sonnet-4-5", out)
    assert re.search(r"why +in turn act", out)
    assert re.search(r"ended +returned", out)
    assert '{"total": 49.9}' in out


def test_an_llm_call_shows_the_conversation_the_answer_and_its_price(refund, store, playhead):
    out = playhead("show", "last", "--call", "1", "--store", store).out
    for said in (
        "max_tokens = 1024",
        "You are the refund agent of a shop.",
        "Please refund order A-1009.",
        "Let me look at the order.",
        '→ lookup({"order": "A-1009"})',
        "2,460 in, 2,048 read from cache; 96 out",
        "$0.0033 (genai-prices",
    ):
        assert said in out


def test_a_call_that_is_not_there_is_a_usage_error(refund, store, playhead):
    ended = playhead("show", "last", "--call", "99", "--store", store)
    assert ended.code == 2
    assert "its calls are 1 to 5" in ended.err


def test_as_json_the_tree_and_a_call_are_whole(refund, store, playhead):
    story = json.loads(playhead("show", "last", "--json", "--store", store).out)
    assert story["status"] == "failed"
    assert story["failure"]["type"] == "KeyError"
    assert story["last_seam"] == "tried to pay"
    (turn,) = [node for node in story["tree"] if node["type"] == "turn"]
    assert turn["children"][0]["children"][0]["children"][0]["name"] == "GET shop/orders"
    call = json.loads(playhead("show", "last", "--call", "1", "--json", "--store", store).out)
    assert "".join(one["text"] for one in call["chunks"]).startswith("event: message_start")
    assert call["llm"][0]["response"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("asked", [[], ["--call", "1"], ["--output"], ["--limit", "4"]])
def test_no_line_is_wider_than_eighty_columns(refund, store, playhead, asked):
    lines = playhead("show", "last", "--store", store, *asked).out.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_limit_says_how_much_is_left_out(refund, store, playhead):
    assert "… 10 more lines" in playhead("show", "last", "--limit", "4", "--store", store).out


@pytest.fixture
def nasty(forge):
    tape = forge(name=NASTY, tags={NASTY: NASTY}, command=[NASTY])
    turn = tape.turn(NASTY, NASTY)
    tape.llm(NASTY, Reply(text=NASTY), parent=turn)
    tape.tool(NASTY, {NASTY: NASTY}, value={"x": NASTY}, parent=turn)
    tape.tool("fails", {}, error=ValueError(NASTY), parent=turn)
    tape.event(f"user {NASTY}", {"x": NASTY}, why=NASTY, lane=NASTY, who=NASTY, at=NASTY)
    tape.event("output", {"stream": "stdout", "text": NASTY})
    tape.seam(turn, NASTY)
    tape.turn_end(turn, error=ValueError(NASTY))
    tape.end("failed", ValueError(NASTY))
    return tape


@pytest.mark.parametrize(
    "asked",
    [
        ["show", "last", "--output"],
        ["show", "last", "--call", "1", "--full"],
        ["show", "last", "--call", "2", "--full"],
        ["show", "last", "--call", "3"],
        ["events", "last", "--pretty"],
        ["play", "last"],
        ["list"],
    ],
)
def test_nothing_on_a_tape_can_drive_the_terminal(nasty, store, playhead, asked):
    out = playhead(*asked, "--store", store).out
    assert out
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", out
    )


def test_errors_that_quote_a_tape_cannot_drive_the_terminal_either(nasty, store, playhead):
    ended = playhead("show", "\x1b[31mred", "--store", store)
    assert ended.code == 2
    assert "\x1b" not in ended.err


def test_a_payload_that_is_gone_leaves_the_rest_to_be_read(forge, store, playhead):
    tape = forge()
    missing = {"$blob": "0" * 64, "size": 70_000, "as": "text"}
    tape.tool("lookup", {"n": 1}, value={"x": missing})
    tape.tool("other", {"n": 2}, value=3)
    tape.end()
    ended = playhead("show", "last", "--store", store)
    assert ended.code == 0
    assert "damaged" in ended.out
    assert "#2 tool other(n=2) → 3" in ended.out


def in_a_terminal(argv, **variables):
    """What a program writes when it is run on a terminal of 80 columns."""
    leader, follower = os.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    running = subprocess.Popen(argv, stdout=follower, stdin=subprocess.DEVNULL, env=environ)
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    assert running.wait() == 0
    return written.decode()


@pytest.mark.parametrize("words", [["show", "last"], ["list"], ["events", "last", "--pretty"]])
def test_colours_are_for_terminals_and_not_where_no_color_is_set(refund, store, words):
    argv = [sys.executable, "-m", "playhead", *words, "--store", str(store)]
    assert "\x1b[31m" in in_a_terminal(argv)
    assert "\x1b" not in in_a_terminal(argv, NO_COLOR="1")
    assert b"\x1b" not in subprocess.run(argv, capture_output=True, check=True).stdout


def test_json_on_a_terminal_means_the_same_and_drives_nothing(nasty, store):
    argv = [sys.executable, "-m", "playhead", "show", "last", "--json", "--store", str(store)]
    shown = in_a_terminal(argv)
    piped = subprocess.run(argv, capture_output=True, check=True).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert json.loads(shown) == json.loads(piped)


def test_the_place_of_a_failure_is_in_the_users_own_code(forge, store, playhead):
    tape = forge()
    error = {"$exception": "builtins:OSError", "message": "no", "traceback": [
        "agent.py:1 main", "agent.py:57 pay", "/usr/lib/python3.11/socket.py:9 connect",
    ]}  # fmt: skip
    tape.event("run.end", {"status": "failed", "error": error, "took_ns": 5})
    assert "\n  at agent.py:57 pay\n" in playhead("show", "last", "--store", store).out
