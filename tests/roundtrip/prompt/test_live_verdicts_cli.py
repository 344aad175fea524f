"""Verdicts and exit codes with a live model, in replay, fork, batch and chaos."""

import json

import pytest

from playhead.testing import Reply, ScriptedLLM, ToolCall

BYE = Reply(text="Bye.")


def look(query="A-17"):
    return Reply(text="Look.", tool_calls=[ToolCall(name="search", arguments={"query": query})])


def mail():
    return Reply(text="Mail.", tool_calls=[ToolCall(name="send_mail", arguments={"to": "jo"})])


@pytest.fixture
def recorded(studio):
    studio.record("plain_loop", [look(), Reply(text="It is late.")])
    return studio


def seen(studio):
    return studio.seen.read_text() if studio.seen.exists() else ""


ELSEWHERE = [look("something else, which is not alike"), BYE]


@pytest.mark.parametrize(
    ("words", "replies", "code", "said"),
    [
        ((), ELSEWHERE, 0, "search ran for real: read"),
        (("--no-allow-reads",), ELSEWHERE, 3, "search was not run: read"),
        ((), [mail(), BYE], 3, "send_mail was not run: irreversible"),
        (("--allow-tool", "send_mail"), [mail(), BYE], 0, "send_mail ran for real"),
        (("--allow-all-tools",), [mail(), BYE], 0, "send_mail ran for real: irreversible"),
        (("--expect", "same"), ELSEWHERE, 3, "changed"),
        (("--expect", "same"), [look(), Reply(text="It is late.")], 0, "as taped"),
    ],
)  # fmt: skip
def test_the_verdict_of_a_replay_with_a_live_model(recorded, words, replies, code, said):
    done = recorded.play("replay", "--live", "llm", *words, replies=replies)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert seen(recorded) == ("mail jo\n" if "send_mail ran" in said else "")
    assert "result similarity" in done.stderr


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--expect", "same"), 3)])
def test_a_fork_that_goes_another_way_is_changed(recorded, words, code):
    done = recorded.play("fork", "--at", "2", "--live", "llm", *words, replies=[BYE])
    assert done.returncode == code, done.stderr
    assert "changed" in done.stderr
    assert "result similarity" in done.stderr


@pytest.mark.parametrize(
    ("words", "replies", "code", "outcome"),
    [
        ((), ELSEWHERE, 0, "passed"),
        (("--expect", "same"), ELSEWHERE, 3, "diverged"),
        ((), [mail(), BYE], 3, "diverged"),
        (("--must-not-call", "search"), ELSEWHERE, 5, "broken"),
    ],
)
def test_a_batch_with_a_live_model(recorded, words, replies, code, outcome):
    results = recorded.folder / "results.json"
    argv = ["batch", "last", "--store", str(recorded.store), "--live", "llm", *words]
    with ScriptedLLM(replies) as llm:
        done = recorded._run([*argv, "--json", str(results)], llm.environ())
    assert done.returncode == code, done.stdout + done.stderr
    assert json.loads(results.read_text())["cases"][0]["outcome"] == outcome


def test_a_fault_that_never_fires_is_an_error_also_beside_one_that_does(recorded):
    for faults in (["llm:9=529"], ["llm:1=529", "tool:nothing=raise:TimeoutError"]):
        words = [word for one in faults for word in ("--fault", one)]
        done = recorded.play("replay", *words)
        assert done.returncode == 2, done.stderr
        assert "no fault fired. The run made" in done.stderr
        assert "1 tool call." in done.stderr


def test_several_faults_at_once_are_survived(recorded):
    done = recorded.play("replay", "--fault", "llm:1=529", "--fault", "llm:3=reset")
    assert done.returncode == 0, done.stderr
    assert "recovered" in done.stderr
    assert len(recorded.report["faults"]) == 2


def chaos(studio, *words, replies=(BYE,)):
    with ScriptedLLM(list(replies)) as llm:
        argv = ["chaos", "last", "--store", str(studio.store), "--jobs", "1", "--json", *words]
        return studio._run(argv, llm.environ())


def test_chaos_with_a_live_model_and_several_faults_at_once(recorded):
    replies = [one for _ in range(2) for one in (look(), Reply(text="It is late."))]
    done = chaos(recorded, "--runs", "2", "--at-once", "2", "--live", "llm", replies=replies * 3)
    assert done.returncode in (0, 3), done.stderr
    results = json.loads(done.stdout)["results"]
    assert {one["outcome"] for one in results} - {"silent"}
