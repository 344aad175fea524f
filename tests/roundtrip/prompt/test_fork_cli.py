"""From a step on, another way: what came before is the tape's, what comes after is the model's."""

import pytest

from playhead.replay.matching.taped import load
from playhead.tape.reader import Tape
from playhead.testing import Reply


@pytest.fixture
def talk(studio, look):
    """Five calls: llm, search, llm, search, llm."""
    studio.record(
        "plain_loop",
        [look("first question"), look("second question", "And again."), Reply(text="Both late.")],
    )
    return studio


def steps(studio, boundary: str) -> list[int]:
    """The numbers of the calls of a boundary, as `show` gives them."""
    path = studio.store / "runs" / studio.runs[0]["run"]
    return [call.number for call in load(Tape(path)).calls if call.boundary == boundary]


def test_before_the_fork_the_tape_answers_and_after_it_the_model_does(talk):
    at = steps(talk, "llm")[2]
    done = talk.play("fork", "--at", str(at), replies=[Reply(text="Only one is late.")])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Let me look.", "And again.", "Only one is late."]
    assert len(talk.requests) == 1
    assert talk.report["coverage"]["llm"] == {
        "exact": 0, "normalised": 2, "fuzzy": 0, "live": 1, "blocked": 0, "missed": 0, "unused": 0,
    }  # fmt: skip
    assert not talk.seen.exists()


def test_the_new_run_knows_its_parent_and_step(talk):
    at = steps(talk, "llm")[1]
    talk.play("fork", "--at", str(at), replies=[Reply(text="Never mind.")])
    parent, fork = talk.runs
    assert fork["forked_from"] == parent["run"]
    assert fork["forked_at"] == at
    assert fork["replay_of"] is None


def test_an_edited_answer_is_what_the_agent_gets_and_what_the_model_is_told(talk):
    at = steps(talk, "llm")[1]
    edit = "llm:1.response.text=I will be quick."
    done = talk.play("fork", "--at", str(at), "--edit", edit, replies=[Reply(text="Done.")])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["I will be quick.", "Done."]
    told = [one.text for one in talk.requests[0].messages if one.role == "assistant"]
    assert "I will be quick." in told[0]


def test_a_streamed_answer_is_edited_in_its_own_wire_shape(studio):
    studio.record(
        "openai_chat", [Reply(text="Hello there!", chunks=4), Reply(text="Bye!")], STREAM="y"
    )
    edit = "llm:1.response.text=Good morning."
    at = steps(studio, "llm")[1]
    done = studio.play("fork", "--at", str(at), "--edit", edit, replies=[Reply(text="Ciao.")])
    assert done.stdout.splitlines() == ["Good morning.", "Ciao."], done.stderr


def test_a_prefix_that_only_read_is_faithful(talk):
    at = str(steps(talk, "llm")[2])
    done = talk.play("fork", "--at", at, "--require-faithful", replies=[Reply(text="Fine.")])
    assert done.returncode == 0, done.stderr
    assert "calls before the fork only read" in " ".join(done.stderr.split())


def test_a_prefix_that_sent_mail_is_simulated_and_refused_where_that_is_asked_for(
    studio, mail, sink
):
    port, mails = sink
    studio.env["SMTP_PORT"] = str(port)
    studio.record("plain_loop", [mail(), Reply(text="Sent.")])
    at = str(steps(studio, "llm")[1])
    done = studio.play("fork", "--at", at, replies=[Reply(text="Well.")])
    assert "Simulated" in done.stderr
    assert "send_mail" in done.stderr
    refused = studio.play("fork", "--at", at, "--require-faithful", replies=[Reply(text="Well.")])
    assert refused.returncode == 2
    assert studio.requests == []
    assert len(mails) == 1


def test_a_step_that_is_not_there_is_refused(talk):
    done = talk.play("fork", "--at", "99")
    assert done.returncode == 2
    assert "There is no step 99" in done.stderr


def test_an_edit_after_the_fork_is_refused_with_the_step_to_fork_at(talk):
    third = steps(talk, "llm")[2]
    done = talk.play("fork", "--at", "2", "--edit", "llm:3.response.text=x")
    assert done.returncode == 2
    assert f"--at {third + 1}" in done.stderr


def test_a_dry_run_of_a_fork_says_from_where_on_it_would_be_live_and_runs_nothing(talk):
    before = talk.runs
    at = str(steps(talk, "llm")[2])
    done = talk.play("fork", "--at", at, "--dry-run", replies=[Reply(text="never")])
    assert done.returncode == 0, done.stderr
    assert "nothing was run" in done.stdout
    assert talk.requests == []
    assert talk.runs == before
