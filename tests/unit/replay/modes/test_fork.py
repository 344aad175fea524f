"""The prefix is the tape's, edits keep the wire's shape, and what wrote before is said."""

import json

import pytest

import playhead
from playhead.errors import UsageError
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck, Piece, Taped
from playhead.replay.modes.edits import edited, parse_edit
from playhead.replay.modes.fork import ForkMode, check_fork, prefix_of
from playhead.replay.modes.replay_options import Policy


def ask(number: int) -> Call:
    return Call(boundary="llm", name="m", request={"q": number})


@pytest.fixture
def forked(tmp_path):
    with playhead.record(name="now", store=tmp_path / "now") as run:

        def begin(recording, at, *edits):
            policy = Policy(live=("llm",))
            mode = ForkMode(
                recording, run.recorder, policy, at=at, edits=[parse_edit(one) for one in edits]
            )
            return Deck(run.recorder, mode)

        yield begin


def test_calls_before_the_fork_are_taped_and_those_after_it_live(taped, forked):
    def work(deck):
        for number in (1, 2, 3):
            deck.perform(ask(number), FunctionAdapter(lambda number=number: f"then {number}"))

    deck = forked(taped(work), 3)
    answers = [deck.perform(ask(number), FunctionAdapter(lambda: "now")) for number in (1, 2, 3)]
    assert answers == ["then 1", "then 2", "now"]


def test_tools_after_the_fork_are_still_answered_from_the_tape(taped, forked, tool):
    def work(deck):
        deck.perform(ask(1), FunctionAdapter(lambda: "then"))
        deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))

    deck = forked(taped(work), 1)
    assert deck.perform(ask(1), FunctionAdapter(lambda: "now")) == "now"
    assert (
        deck.perform(tool("search", q=1), FunctionAdapter(lambda: pytest.fail("it ran"))) == "found"
    )


def test_a_tools_answer_can_be_edited(taped, forked, tool):
    recording = taped(
        lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))
    )
    deck = forked(recording, 2, 'tool:1.response={"none": true}')
    assert deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live")) == {"none": True}


def stream(*events: object) -> Taped:
    head = {"status": 200, "headers": [["content-type", "text/event-stream"]]}
    data = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]
    return Taped(
        how="returned", head=head, pieces=[Piece(stream="body", data=one, at_ns=0) for one in data]
    )


def whole(body: object) -> Taped:
    raw = json.dumps(body).encode()
    headers = [["Content-Type", "application/json"], ["Content-Length", str(len(raw))]]
    return Taped(
        how="returned", head={"status": 200, "headers": headers},
        pieces=[Piece(stream="body", data=raw, at_ns=0)],
    )  # fmt: skip


def body_of(taped: Taped) -> bytes:
    return b"".join(piece.data for piece in taped.pieces)


EDIT = parse_edit("llm:1.response.text=Ünder way.")


@pytest.mark.parametrize(
    ("api", "body", "text"),
    [
        (
            "anthropic.messages",
            {"content": [{"type": "text", "text": "a"}, {"type": "tool_use", "name": "t"}]},
            lambda made: made["content"][0]["text"],
        ),
        (
            "openai.chat",
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}}]},
            lambda made: made["choices"][0]["message"]["content"],
        ),
        (
            "openai.responses",
            {"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]},
            lambda made: made["output"][0]["content"][0]["text"],
        ),
        (
            "gemini.generate",
            {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
            lambda made: made["candidates"][0]["content"]["parts"][0]["text"],
        ),
    ],
)
def test_an_answer_is_edited_in_the_shape_of_its_api(api, body, text):
    made = edited(whole(body), EDIT, api)
    assert text(json.loads(body_of(made))) == "Ünder way."
    assert ["Content-Length", str(len(body_of(made)))] in made.head["headers"]


def test_the_tool_calls_of_an_edited_answer_stay():
    body = {"content": [{"type": "text", "text": "a"}, {"type": "tool_use", "name": "t"}]}
    made = json.loads(body_of(edited(whole(body), EDIT, "anthropic.messages")))
    assert [one["type"] for one in made["content"]] == ["text", "tool_use"]


def test_a_stream_says_the_new_text_once():
    def delta(text: str) -> dict[str, object]:
        return {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": text},
        }

    taped = stream({"type": "message_start"}, delta("a"), delta("b"), {"type": "message_stop"})
    made = body_of(edited(taped, EDIT, "anthropic.messages")).decode()
    events = [json.loads(line[6:]) for line in made.splitlines() if line.startswith("data: ")]
    assert [one["type"] for one in events] == [
        "message_start", "content_block_delta", "message_stop",
    ]  # fmt: skip
    assert events[1]["delta"]["text"] == "Ünder way."


def test_a_stream_of_the_responses_api_says_it_whole_at_its_end_as_well():
    item = {"type": "message", "content": [{"type": "output_text", "text": "ab"}]}
    taped = stream(
        {"type": "response.output_text.delta", "delta": "a"},
        {"type": "response.output_text.delta", "delta": "b"},
        {"type": "response.output_text.done", "text": "ab"},
        {"type": "response.completed", "response": {"output": [item]}},
    )
    made = body_of(edited(taped, EDIT, "openai.responses")).decode()
    assert made.count("Ünder way.") == 3
    assert '"ab"' not in made


def test_a_stream_that_only_calls_tools_cannot_be_given_a_text():
    with pytest.raises(UsageError, match="no text"):
        edited(stream({"type": "message_start"}), EDIT, "anthropic.messages")


@pytest.mark.parametrize("spec", ["llm:1.text=x", "llm:1.response=x", "http:1.response=x", "x"])
def test_an_edit_that_is_none_is_refused(spec):
    with pytest.raises(UsageError, match="is not an edit"):
        parse_edit(spec)


def test_a_fork_that_cannot_be_made_is_refused_before_anything_runs(taped):
    recording = taped(lambda deck: deck.perform(ask(1), FunctionAdapter(lambda: "then")))
    with pytest.raises(UsageError, match="There is no step 9"):
        check_fork(recording, 9, [])
    with pytest.raises(UsageError, match="there is no llm:4"):
        check_fork(recording, 2, [parse_edit("llm:4.response.text=x")])


def test_a_prefix_is_faithful_if_it_only_read(taped, tool):
    def work(deck):
        deck.perform(ask(1), FunctionAdapter(lambda: "then"))
        deck.perform(
            Call(boundary="tool", name="look", request={}, effect="read"),
            FunctionAdapter(lambda: 1),
        )
        deck.perform(tool("send_mail", to="x"), FunctionAdapter(lambda: "sent"))

    recording = taped(work)
    assert prefix_of(recording, 3, {}).faithful
    simulated = prefix_of(recording, 4, {})
    assert simulated.writes == ("3 tool send_mail",)
    assert prefix_of(recording, 4, {"send_*": "read"}).faithful
