"""Two runs side by side: which steps are partners, which differ, which come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.story import tell
from playhead.story.comparison.align import align, alike
from playhead.story.comparison.compare import compare
from playhead.tape.reader import Tape
from playhead.testing import Reply


@pytest.fixture
def told(forge):
    """The story of a run: texts are what the model says, pairs are tools and their arguments."""

    def make(run_id: str, *steps):
        tape = forge(run_id)
        for step in steps:
            if isinstance(step, str):
                tape.llm("Where is my order?", Reply(text=step))
            else:
                tape.tool(*step, value=f"result of {step[0]}")
        return tell(Tape(tape.end()))

    return make


def kinds(comparison):
    return [step.kind for step in comparison.steps]


def test_a_run_is_the_same_as_itself(told):
    story = told("one", "I look.", ("lookup", {"order": 1}), "It shipped.")
    comparison = compare(story, story)
    assert comparison.same
    assert comparison.first_difference is None
    assert comparison.result_similarity == 1.0
    assert [step.similarity for step in comparison.steps] == [1.0, 1.0, 1.0]


def test_another_answer_is_a_change_with_its_similarity(told):
    left = told("one", "It shipped on Tuesday.")
    right = told("two", "It shipped on Monday.")
    (step,) = compare(left, right).steps
    assert step.kind == "changed"
    assert 0.5 < step.similarity < 1.0
    assert step.left.answered == "It shipped on Tuesday."
    assert step.right.answered == "It shipped on Monday."


def test_another_tool_is_another_step(told):
    left = told("one", "I look.", ("lookup", {"order": 1}), "Done.")
    right = told("two", "I look.", ("refund", {"order": 1}), "Done.")
    comparison = compare(left, right)
    assert kinds(comparison) == ["same", "removed", "added", "same"]
    assert comparison.first_difference == 1


def test_a_tool_with_other_arguments_is_a_changed_step(told):
    left = told("one", ("lookup", {"order": 1}))
    right = told("two", ("lookup", {"order": 2}))
    assert kinds(compare(left, right)) == ["changed"]


def test_a_step_in_the_middle_comes_in_without_moving_the_others(told):
    left = told("one", "A", ("lookup", {"n": 1}), "B", ("lookup", {"n": 2}), "C")
    right = told("two", "A", ("lookup", {"n": 1}), ("audit", {}), "B", ("lookup", {"n": 2}), "C")
    assert kinds(compare(left, right)) == ["same", "same", "added", "same", "same", "same"]


def test_what_a_tool_does_inside_is_no_step(forge):
    tape = forge("nested")
    call = tape.call("tool", "lookup", {"arguments": {}})
    inner = tape.call("http", "GET shop.example", {"url": "https://shop.example"}, parent=call)
    tape.outcome(inner)
    tape.outcome(call, value=1)
    story = tell(Tape(tape.end()))
    assert [step.left.name for step in compare(story, story).steps] == ["lookup"]


def test_runs_without_a_model_have_no_result_to_compare(told):
    left, right = told("one", ("lookup", {})), told("two", ("lookup", {}))
    assert compare(left, right).result_similarity is None


def test_taped_live_and_blocked_tools_are_counted(forge):
    tape = forge("mixed")
    for match in ({"rung": "exact", "of": "1:2"}, {"rung": "blocked"}, None):
        call = tape.call("tool", "lookup", {"arguments": {}}, **({"match": match} if match else {}))
        tape.outcome(call, value=1)
    story = tell(Tape(tape.end()))
    figures = {one.name: one.right for one in compare(story, story).figures}
    assert (figures["tools_taped"], figures["tools_live"], figures["tools_blocked"]) == (1, 1, 1)


steps = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=60)


@given(left=steps, right=steps)
def test_every_step_is_placed_once_in_order_and_only_with_its_kind(left, right):
    pairs = align(left, right, [one[0] for one in left], [one[0] for one in right])
    assert [i for i, _ in pairs if i is not None] == list(range(len(left)))
    assert [j for _, j in pairs if j is not None] == list(range(len(right)))
    assert all(left[i][0] == right[j][0] for i, j in pairs if i is not None and j is not None)


def test_long_loops_that_answer_differently_throughout_are_still_paired():
    left = [("llm" if at % 2 else "tool", at) for at in range(2000)]
    right = [("extra", 0), *((kind, -at - 1) for kind, at in left)]
    pairs = align(left, right, [one[0] for one in left], [one[0] for one in right])
    partners = [(i, j) for i, j in pairs if i is not None and j is not None]
    assert partners == [(at, at + 1) for at in range(2000)]


@pytest.mark.parametrize(
    ("left", "right", "score"),
    [("", "", 1.0), ("a", "", 0.0), ("a b", "a b", 1.0), ("a b", "a c", 0.5), ("a", "b", 0.0)],
)
def test_likeness_is_the_share_of_words_in_common(left, right, score):
    assert alike(left, right) == score


def test_likeness_of_long_texts_sees_one_changed_word():
    words = [f"word{at}" for at in range(5000)]
    changed = [*words[:2500], "other", *words[2501:]]
    assert alike(" ".join(words), " ".join(changed)) == pytest.approx(0.9998)
