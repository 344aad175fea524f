"""Agents that print what they do are overheard, once, and not where their exchanges are on the tape."""

from pathlib import Path

from playhead import record
from playhead.recording.adapter import Adapter, FunctionAdapter
from playhead.recording.deck import Call, declared
from playhead.story import tell
from playhead.tape.reader import Tape

STREAM = (Path(__file__).parents[1] / "transcripts" / "said" / "claude.jsonl").read_bytes()


class Printing(Adapter):
    """A process that prints a conversation, and asks a model itself or not."""

    def __init__(self, *, with_llm):
        self.with_llm = with_llm

    def live(self, crossing):
        crossing.chunk(STREAM, "stdout")
        if self.with_llm:
            call = Call(boundary="llm", name="x", facts={"api": "anthropic.messages"})
            declared().perform(call, FunctionAdapter(lambda: None))
        return {"returncode": 0}


def recorded(tmp_path, *, with_llm=False, programs=("claude",), level="full"):
    with record(store=tmp_path, level=level) as run:
        for name in programs:
            call = Call(boundary="process", name=name, request={"argv": [name]})
            declared().perform(call, Printing(with_llm=with_llm))
    return tell(Tape(run.path))


def test_what_an_agent_prints_is_told_under_its_process(tmp_path):
    story = recorded(tmp_path)
    process, first, tool, last = story.calls()
    assert [first.boundary, tool.name, last.llm[0].response.text] == ["llm", "Bash", "Two files."]
    assert (first.parent, tool.cause, tool.value) == (process.ref, first.ref, "hello\na.txt\np.md")
    assert (story.totals.tokens, story.totals.cost_usd) == (240, 0.0016)
    # On the tape is what was recorded, and no more.
    assert story.totals.events == len(list(Tape(tmp_path / "runs" / story.manifest.run).events()))


def test_where_the_exchanges_are_on_the_tape_nobody_listens(tmp_path):
    story = recorded(tmp_path, with_llm=True)
    assert [call.boundary for call in story.calls()] == ["process", "llm"]
    assert story.totals.tokens is None


def test_a_session_that_is_printed_twice_counts_once(tmp_path):
    assert recorded(tmp_path, programs=("claude", "cat")).totals.tokens == 240


def test_a_session_that_the_agent_continues_counts_each_time(tmp_path):
    assert recorded(tmp_path, programs=("claude", "claude")).totals.tokens == 480


def test_below_full_there_is_nothing_to_hear(tmp_path):
    assert len(recorded(tmp_path, level="standard").calls()) == 1
