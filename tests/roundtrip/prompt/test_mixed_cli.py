"""Another prompt against yesterday's tools: the model is asked, nothing else is touched."""

import json

import pytest

from playhead.testing import Reply


@pytest.mark.parametrize("program", ["plain_loop", "anthropic_loop"])
def test_a_changed_system_prompt_is_asked_live_with_tools_taped(studio, look, program):
    studio.record(program, [look(), Reply(text="It is late.")])
    (studio.folder / "system.txt").write_text("Be brief.\n")
    replies = [look(), Reply(text="Late.")]
    done = studio.play("replay", "--live", "llm", "--system-file", "system.txt", replies=replies)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Let me look.", "Late."]
    assert [one.json["system"] for one in studio.requests] == ["Be brief.", "Be brief."]
    assert "Order A-17 is late." in studio.requests[1].prompt
    assert not studio.seen.exists()
    assert studio.report["verdict"] == "changed"
    assert studio.report["coverage"]["llm"]["live"] == 2
    assert studio.report["coverage"]["tool"]["exact"] == 1


def test_the_comparison_is_printed_after_the_report(recorded, look):
    replies = [look(), Reply(text="It will come tomorrow.")]
    done = recorded.play("replay", "--live", "llm", replies=replies)
    report, _, comparison = done.stderr.partition("trajectories differ")
    assert "changed (llm live)" in report
    assert "tools taped" in comparison
    assert "-It is late." in comparison
    assert "+It will come tomorrow." in comparison


def test_what_was_really_asked_is_on_the_new_tape(recorded, look):
    replies = [look(), Reply(text="Late.")]
    recorded.play("replay", "--live", "llm", "--model", "claude-opus-5", replies=replies)
    assert {one.model for one in recorded.requests} == {"claude-opus-5"}
    replay = recorded.runs[-1]
    lines = (recorded.store / "runs" / replay["run"]).glob("tape-*.jsonl")
    names = {
        event["data"]["name"]
        for path in lines
        for event in map(json.loads, path.read_text().splitlines())
        if event["kind"] == "call" and event["data"]["boundary"] == "llm"
    }
    assert names == {"anthropic.messages claude-opus-5"}


def test_a_patch_changes_each_live_request(recorded, look):
    patch = [{"op": "replace", "path": "/max_tokens", "value": 7}]
    (recorded.folder / "p.json").write_text(json.dumps(patch))
    replies = [look(), Reply(text="Late.")]
    recorded.play("replay", "--live", "llm", "--patch", "p.json", replies=replies)
    assert [one.json["max_tokens"] for one in recorded.requests] == [7, 7]


def test_a_request_nearly_the_same_gets_the_taped_answer_with_its_score(recorded, look):
    replies = [look("status of order A-17 in the warehouse now"), Reply(text="Late.")]
    done = recorded.play("replay", "--live", "llm", replies=replies)
    (found,) = recorded.report["inexact"]
    assert (found["name"], found["rung"]) == ("search", "fuzzy")
    assert 0.7 <= found["score"] < 1
    assert f"{found['score']:.2f}" in done.stderr
    assert not recorded.seen.exists()


def test_under_the_threshold_a_tool_is_blocked_and_the_model_is_told(recorded, look):
    replies = [look("status of order A-17 in the warehouse now"), Reply(text="I cannot know.")]
    words = ("--live", "llm", "--match-threshold", "0.999", "--no-allow-reads")
    done = recorded.play("replay", *words, replies=replies)
    assert done.returncode == 3
    assert "1 call blocked" in done.stderr
    assert "search was not run" in recorded.requests[1].prompt
    assert recorded.report["blocked"][0]["name"] == "search"
    assert not recorded.seen.exists()


def test_a_run_that_goes_another_way_is_changed_unless_the_same_was_expected(recorded, look):
    replies = [Reply(text="I do not know.")]
    done = recorded.play("replay", "--live", "llm", replies=replies)
    assert (done.returncode, recorded.report["verdict"]) == (0, "changed")
    again = recorded.play("replay", "--live", "llm", "--expect", "same", replies=replies)
    assert again.returncode == 3


@pytest.mark.parametrize("words", [(), ("--no-allow-reads", "--allow-tool", "search")])
def test_a_tool_that_only_reads_runs_by_default_or_by_name(recorded, look, words):
    replies = [look("weather in Lisbon"), Reply(text="Sunny.")]
    recorded.play("replay", "--live", "llm", *words, replies=replies)
    assert recorded.report["allowed"][0]["name"] == "search"
    if words:  # what runs by default changes no real file
        assert recorded.seen.read_text() == "search weather in Lisbon\n"


def test_no_mail_is_sent_however_much_the_model_wants_it(recorded, look, mail, sink):
    port, mails = sink
    replies = [look(), mail(), Reply(text="I could not send it.")]
    done = recorded.play("replay", "--live", "llm", replies=replies, SMTP_PORT=str(port))
    assert done.returncode == 3, done.stderr
    assert "send_mail was not run" in recorded.requests[2].prompt
    assert "irreversible" in recorded.requests[2].prompt
    assert mails == []


def test_all_tools_are_all_of_them(studio, mail, sink):
    port, mails = sink
    studio.env["SMTP_PORT"] = str(port)
    studio.record("plain_loop", [Reply(text="Nothing to do.")])
    words = ("--live", "llm", "--allow-all-tools")
    done = studio.play("replay", *words, replies=[mail(), Reply(text="Sent.")])
    assert done.returncode == 0, done.stderr
    assert len(mails) == 1


def test_a_mail_that_was_sent_then_is_not_sent_again(studio, mail, sink):
    port, mails = sink
    studio.env["SMTP_PORT"] = str(port)
    studio.record("plain_loop", [mail(), Reply(text="Done.")])
    assert len(mails) == 1
    studio.play("replay", "--live", "llm", replies=[mail(), Reply(text="Sent.")])
    assert studio.report["coverage"]["tool"]["exact"] == 1
    assert len(mails) == 1


def test_a_live_tool_may_reach_the_world(studio, mail, sink):
    port, mails = sink
    studio.env["SMTP_PORT"] = str(port)
    studio.record("plain_loop", [mail(), Reply(text="Done.")])
    done = studio.play("replay", "--live", "tool:send_mail")
    assert done.returncode == 0, done.stderr
    assert len(mails) == 2


def test_the_config_may_say_what_a_tool_does(studio, mail, sink):
    port, mails = sink
    studio.env["SMTP_PORT"] = str(port)
    studio.record("plain_loop", [Reply(text="Nothing to do.")])
    (studio.folder / "playhead.toml").write_text('[effects]\n"send_*" = "read"\n')
    replies = [mail(), Reply(text="Sent.")]
    studio.play("replay", "--live", "llm", replies=replies)
    assert len(mails) == 1


def test_strict_ends_at_the_first_miss(recorded, mail):
    done = recorded.play("replay", "--live", "llm", "--strict", replies=[mail()])
    assert done.returncode == 3
    assert recorded.report["first_divergence"]["name"] == "send_mail"


def test_a_dry_run_says_what_would_be_and_does_nothing(recorded):
    before = recorded.runs
    done = recorded.play("replay", "--live", "llm", "--dry-run", replies=[Reply(text="never")])
    assert done.returncode == 0
    assert "nothing was run" in done.stdout
    assert recorded.requests == []
    assert recorded.runs == before
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["tool", "search", "1", "tape", "allowed", "read"] in rows


def test_without_persist_the_store_is_as_it_was(recorded, look):
    derived = {"library.db", "origin.key"}  # the index, and the key that marks runs elsewhere
    before = sorted(path for path in recorded.store.rglob("*") if path.name not in derived)
    replies = [look(), Reply(text="Late.")]
    done = recorded.play("replay", "--live", "llm", "--no-persist", replies=replies)
    assert done.returncode == 0, done.stderr
    assert sorted(p for p in recorded.store.rglob("*") if p.name not in derived) == before


@pytest.mark.parametrize("stream", ["", "yes"])
def test_openai_is_asked_with_another_prompt_too(studio, stream):
    studio.record("openai_chat", [Reply(text="Hello!"), Reply(text="Bye!")], STREAM=stream)
    (studio.folder / "system.txt").write_text("Be brief.")
    replies = [Reply(text="Hi."), Reply(text="Ciao.")]
    done = studio.play(
        "replay", "--live", "llm", "--system-file", "system.txt", replies=replies, STREAM=stream
    )
    assert done.stdout.splitlines() == ["Hi.", "Ciao."], done.stderr
    assert [one.messages[0].text for one in studio.requests] == ["Be brief."] * 2


def test_changing_what_is_asked_of_a_taped_model_is_refused(recorded):
    done = recorded.play("replay", "--model", "claude-opus-5")
    assert done.returncode == 2
    assert "--live llm" in done.stderr


def test_a_boundary_that_is_none_is_refused(recorded):
    done = recorded.play("replay", "--live", "lmm")
    assert done.returncode == 2
    assert "expected one of llm" in done.stderr


def test_odd_timestamps_on_a_tape_do_not_matter(recorded, look):
    path = next((recorded.store / "runs").glob("*/manifest.json"))
    manifest = json.loads(path.read_text())
    manifest["started_at"], manifest["ended_at"] = "yesterday", "2026-11-15T09:00:00+14:00"
    del manifest["started_ns"], manifest["duration_s"]
    path.write_text(json.dumps(manifest))
    done = recorded.play("replay", "--live", "llm", replies=[look(), Reply(text="Late.")])
    assert done.returncode == 0, done.stderr


def test_the_model_sees_no_more_than_the_last_messages(studio):
    studio.env["REMEMBER"] = "yes"
    studio.record("openai_chat", [Reply(text="Hello!"), Reply(text="Bye!")])
    words = ("--live", "llm", "--max-context-messages", "1")
    done = studio.play("replay", *words, replies=[Reply(text="Hi."), Reply(text="Ciao.")])
    assert done.returncode == 0, done.stderr
    assert [one.text for one in studio.requests[1].messages] == ["Say goodbye."]
