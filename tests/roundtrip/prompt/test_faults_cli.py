"""Each kind of failure once, met by an agent that recovers and by one that does not."""

import json

import pytest

from playhead.testing import HttpSite, Reply


def test_an_sdk_that_retries_comes_through_and_gets_the_taped_answer(studio, look):
    studio.record("anthropic_loop", [look(), Reply(text="It is late.")])
    # The SDK retries twice: the first answer comes at the third try, the second one at the sixth.
    faults = ["llm:1=429", "llm:2=slow:700s", "llm:4=529", "llm:5=reset"]
    done = studio.play("replay", *(word for one in faults for word in ("--fault", one)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Let me look.", "It is late."]
    assert studio.report["recovered"] is True
    assert [one["fault"] for one in studio.report["faults"]] == faults
    assert "recovered" in done.stderr
    assert not studio.seen.exists()


@pytest.mark.parametrize("fault", ["llm:2=529", "llm:1=429", "llm:2=reset", "llm:1=500"])
def test_an_agent_that_retries_comes_through_one_fault(recorded, fault):
    done = recorded.play("replay", "--fault", fault)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Let me look.", "It is late."]
    assert recorded.report["recovered"] is True
    assert [one["fault"] for one in recorded.report["faults"]] == [fault]
    assert not recorded.seen.exists()


def test_an_agent_that_does_not_retry_meets_its_own_sdks_error(studio):
    studio.record("anthropic_errors", [Reply(text=f"Answer {n}.") for n in range(1, 5)])
    faults = ["llm:1=529", "llm:2=401", "llm:3=reset", "llm:4=slow:700s"]
    done = studio.play("replay", *(word for one in faults for word in ("--fault", one)))
    assert done.stdout.splitlines() == [
        "OverloadedError", "AuthenticationError", "APIConnectionError", "APITimeoutError",
    ]  # fmt: skip


def test_an_agent_that_does_not_retry_does_not_recover(studio, look):
    studio.record("plain_loop", [look(), Reply(text="It is late.")], RETRIES="0")
    done = studio.play("replay", "--fault", "llm:2=529")
    assert done.returncode == 3
    assert studio.report["recovered"] is False
    assert studio.report["exit_code"] == {"recorded": 0, "replayed": 1}
    assert "did not recover" in done.stderr


def test_an_outage_longer_than_the_retries_breaks_the_agent(recorded):
    done = recorded.play("replay", "--fault", "llm:2=529*3")
    assert done.returncode == 3
    assert len(recorded.report["faults"]) == 3


def test_a_stream_cut_after_its_fifth_event_is_cut_there(studio, look):
    replies = [Reply(text="One two three four five.", chunks=5)]
    studio.record("anthropic_loop", replies, STREAM="yes")
    done = studio.play("replay", "--fault", "llm:1=cut@5")
    assert done.returncode == 3
    assert "incomplete" in done.stderr or "peer closed" in done.stderr
    assert studio.report["faults"][0]["fault"] == "llm:1=cut@5"


def test_a_tool_that_fails_once_is_tried_again_by_an_agent_that_forgives(studio, look):
    studio.record("plain_loop", [look(), Reply(text="It is late.")], FORGIVE="yes")
    done = studio.play("replay", "--fault", "tool:search=raise:TimeoutError")
    assert done.returncode == 0, done.stderr
    assert studio.report["recovered"] is True
    assert not studio.seen.exists()


def test_a_tool_that_fails_breaks_an_agent_that_does_not_forgive(recorded):
    done = recorded.play("replay", "--fault", "tool:search=raise:TimeoutError")
    assert done.returncode == 3
    assert "TimeoutError: injected by a fault" in done.stderr


def test_a_tool_may_return_something_else_and_the_report_says_what_came_of_it(recorded):
    done = recorded.play("replay", "--fault", 'tool:1=return:{"error": "no such order"}')
    assert done.returncode == 3
    assert recorded.report["recovered"] is False
    assert recorded.report["first_divergence"]["boundary"] == "llm"
    assert "no such order" in json.dumps(recorded.report["first_divergence"])


@pytest.mark.parametrize("fault", ["process:git*=exit:128", "process:1=kill"])
@pytest.mark.parametrize("forgive", ["yes", ""])
def test_a_process_that_fails_is_survived_by_those_who_try_again(studio, fault, forgive):
    studio.record("git_version", FORGIVE=forgive)
    done = studio.play("replay", "--fault", fault)
    assert done.returncode == (0 if forgive else 3), done.stderr
    assert studio.report["recovered"] is bool(forgive)


@pytest.mark.parametrize("forgive", ["yes", ""])
def test_a_connection_that_is_reset_is_survived_by_those_who_try_again(studio, forgive):
    with HttpSite() as site:
        studio.record("fetch", FORGIVE=forgive, SITE=f"{site.url}/gzip")
    done = studio.play("replay", "--fault", "http:127.0.0.1*=reset")
    assert done.returncode == (0 if forgive else 3), done.stderr
    if not forgive:
        assert "ConnectionResetError" in done.stderr


def test_a_fault_that_is_none_is_refused_before_anything_runs(recorded):
    done = recorded.play("replay", "--fault", "llm:3=flood")
    assert done.returncode == 2
    assert "is not a failure" in done.stderr


def test_chaos_ranks_what_broke_the_agent_first_and_the_same_each_time(studio):
    studio.record("git_version", FORGIVE="")
    words = ["chaos", "last", "--store", str(studio.store), "--runs", "3", "--seed", "7", "--json"]
    ran = [studio._run(words, {}) for _ in range(2)]
    found = [json.loads(one.stdout)["results"] for one in ran]
    assert ran[0].returncode == 3
    assert found[0] == found[1]
    assert [one["outcome"] for one in found[0]] == ["crashed"] * 3
    assert {one["trial"]["spec"] for one in found[0]} == {
        "process:1=exit:1", "process:1=exit:127", "process:1=kill",
    }  # fmt: skip
    assert len(studio.runs) == 1
