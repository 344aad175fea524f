"""What claude, codex and gemini print is read as it is meant: lines of real runs, and broken ones."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.transcripts import (
    AgentStream,
    ModelAnswer,
    SessionEnded,
    SessionNote,
    SessionStarted,
    ToolAnswer,
    outline,
)
from playhead.transcripts.transcript_events import drafts_of
from playhead.transcripts.transcript_fields import moment_ns

SAID = Path(__file__).parent / "said"
TOOLS = {"claude": "Bash", "codex": "shell", "gemini": "run_shell_command"}


def read(raw, pieces=1):
    stream = AgentStream()
    size = max(1, len(raw) // pieces)
    glances = []
    for at in range(0, len(raw), size):
        glances += stream.feed(raw[at : at + size], at)
    return stream.close(), glances


def lines(*members):
    told = ({"session_id": "s", **one} for one in members)
    return b"".join(json.dumps(one).encode() + b"\n" for one in told)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("pieces", [1, 37])
def test_a_real_run_is_read_whole_however_it_is_cut(tool, pieces):
    steps, glances = read((SAID / f"{tool}.jsonl").read_bytes(), pieces)
    assert [one.tool for one in steps if isinstance(one, SessionStarted)] == [tool]
    said = [one for one in steps if isinstance(one, ModelAnswer)]
    assert [one.text for one in said] == ["Let me look.", "Two files."]
    assert [one.name for one in said[0].asked] == [TOOLS[tool]]
    (answer,) = [one for one in steps if isinstance(one, ToolAnswer)]
    assert answer.id == said[0].asked[0].id
    assert answer.value.split() == ["hello", "a.txt", "p.md"]
    told = outline(steps)
    assert (told.answers, told.tools, told.error) == (2, 1, None)
    assert (told.usage["input_tokens"], told.usage["output_tokens"]) == (200, 40)
    assert told.text.replace("\n\n", " ") == "Let me look. Two files."
    words = "".join(one.text for one in glances if one.kind in ("text", "delta"))
    assert words == "Let me look.Two files."
    assert [one.kind for one in glances if one.kind == "tool"] == ["tool"]


def test_claudes_cost_and_retries_are_told():
    steps, _ = read((SAID / "claude.jsonl").read_bytes())
    assert outline(steps).cost_usd == 0.0016
    (retry,) = [one for one in steps if isinstance(one, SessionNote)]
    assert (retry.kind, retry.data["error_status"]) == ("agent.api_retry", 529)


def test_an_api_failure_that_calls_itself_a_success_is_a_failure():
    end = {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 529"}
    steps, glances = read(lines(end))
    assert outline(steps).error == "API Error: 529"
    assert glances[-1].kind == "failure"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (
            lines({"type": "result", "subtype": "error_max_turns", "is_error": False}),
            "error_max_turns",
        ),
        (b'{"type":"turn.failed","error":{"message":"no key"}}\n', "no key"),
        (
            lines({"type": "init"})
            + b'{"type":"result","status":"error","error":{"message":"quota"}}\n',
            "quota",
        ),
    ],
)
def test_every_tool_has_its_own_way_to_fail(raw, error):
    assert outline(read(raw)[0]).error == error


def test_lines_of_sub_agents_stand_under_the_call_that_started_them():
    def says(number, block, parent=None):
        message = {"id": number, "model": "m", "content": [block]}
        return {"type": "assistant", "message": message, "parent_tool_use_id": parent}

    use = {"type": "tool_use", "id": "t1", "name": "Task", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    steps, _ = read(
        lines(
            says("m1", use),
            says("m2", {"type": "text", "text": "from below"}, "t1"),
            {"type": "user", "message": {"content": [result]}, "parent_tool_use_id": None},
            # A block of the first answer that comes after the tool it asked for has answered.
            says("m1", {"type": "text", "text": "late"}),
            says("m3", {"type": "text", "text": "done"}),
        )
    )
    first, below, last = (one for one in steps if isinstance(one, ModelAnswer))
    assert (first.text, below.agent, last.text) == ("late", "t1", "done")
    drafts = drafts_of(steps)
    calls = {draft.data["name"] + draft.lane: draft for draft in drafts if draft.kind == "call"}
    assert drafts[calls["mmain/1"].parent].data["name"] == "Task"
    walls = [draft.wall for draft in drafts]
    assert walls == sorted(walls)


def test_what_is_no_agent_says_nothing():
    for raw in (b"plain words\n" * 100, b'{"type": "user"}\n', b"[1]\n{torn", b"\xff\xfe\n", b""):
        assert read(raw) == ([], [])


def test_warnings_before_the_first_line_are_passed_over():
    steps, _ = read(b"Warning: no ripgrep\n" + (SAID / "gemini.jsonl").read_bytes())
    assert outline(steps).answers == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = ("message", "content", "item", "usage", "error", "stats", "result", "id", "delta", "errors")
KINDS = [
    "system",
    "assistant",
    "user",
    "result",
    "init",
    "message",
    "tool_use",
    "tool_result",
    "error",
    "item.started",
    "summary",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "thread.started",
]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(WORDS), JSON))))
def test_no_line_can_break_a_reader(told):
    for first in ({"type": "init"}, {"type": "thread.started"}, {"type": "system"}):
        steps, _ = read(lines(first, *({"type": kind, **rest} for kind, rest in told)))
        drafts_of(steps)
        outline(steps)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-15T07:11:05.123456789Z", 1_794_726_665_123_456_789),
        ("2026-11-15T08:11:05.5+01:00", 1_794_726_665_500_000_000),
        ("2024-02-29 00:00:00", 1_709_164_800_000_000_000),
        ("2026-13-01T00:00:00Z", None),
        ("yesterday", None),
        (17, None),
    ],
)
def test_moments_are_read_to_the_nanosecond(text, ns):
    assert moment_ns(text) == ns


def test_the_last_word_of_a_turn_counts_for_each_turn():
    turn = b'{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":1}}\n'
    steps, _ = read(b'{"type":"thread.started","thread_id":"t"}\n' + turn * 2)
    assert [one.ok for one in steps if isinstance(one, SessionEnded)] == [True, True]
    assert outline(steps).usage["input_tokens"] == 10
