"""`playhead batch` as far as it goes without an agent: what is chosen, asked, written and refused."""

import json
import os
import xml.etree.ElementTree as ET

import pytest

from playhead import clock
from playhead.cli.batch.batch_command import Journal
from playhead.errors import UsageError
from playhead.exporters.batch_reports import junit_xml, step_summary
from playhead.story.invariants import Broken
from playhead.story.verdicts import Results, Verdict, cases_of, verdict_from
from playhead.tape.single_file import pack
from playhead.views.html_page import results_page

DAY = 86_400_000_000_000
EVIL = "<script>alert(1)</script>\x1b[2J\x00|`"


@pytest.fixture
def four(forge):
    now = clock.wall_ns()
    forge("ok-ci", name="refund", tags={"env": "ci"}, started=now - DAY).end()
    forge("old-ci", name="refund-2", tags={"env": "ci"}, started=now - 9 * DAY).end()
    forge("bad-dev", name="search", tags={"env": "dev"}, started=now).end("failed", ValueError())
    forge("again", name="refund", tags={"env": "ci"}, started=now, replay_of="ok-ci").end()


def chosen(ended):
    assert ended.code == 0, ended.err
    return sorted(line.split()[0] for line in ended.out.splitlines())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tag:env=ci"], ["ok-ci", "old-ci"]),
        (["tag:env"], ["bad-dev", "ok-ci", "old-ci"]),
        (["tag:env=ci", "since:2d"], ["ok-ci"]),
        (["name:refund*"], ["ok-ci", "old-ci"]),
        (["status:failed"], ["bad-dev"]),
        (["status:failed", "status:ok", "since:2d"], ["bad-dev", "ok-ci"]),
        (["status:failed", "old"], ["bad-dev", "old-ci"]),
        (["again"], ["again"]),
        (["last"], ["bad-dev"]),
    ],
)
def test_selectors_choose_runs_and_a_replay_only_by_name(four, store, playhead, words, found):
    assert chosen(playhead("batch", *words, "--dry-run", "--store", store)) == found


def test_an_accepted_replay_is_chosen_like_a_run(forge, store, playhead):
    forge("first", tags={}).end()
    forge("inherits", tags={"golden": "true"}, replay_of="first").end()
    forge("crowned", tags={"golden": "true"}, replay_of="first", extra={"supersedes": []}).end()
    assert chosen(playhead("batch", "tag:golden=true", "--dry-run", "--store", store)) == [
        "crowned"
    ]


def test_single_file_tapes_are_chosen_by_file_folder_and_glob(forge, here, store, playhead):
    path = forge("one").end()
    for name in ("a", "deep/b"):
        pack(path, here / "tapes" / f"{name}.tape.jsonl")
    both = ["tapes/a.tape.jsonl", "tapes/deep/b.tape.jsonl"]
    for words in (["tapes"], ["tapes/**/*.tape.jsonl"], [here / "tapes"], both):
        assert chosen(playhead("batch", *words, "--dry-run", "--store", store)) == both
    assert chosen(playhead("batch", path, "--dry-run")) == [str(path)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["name:nothing*"], "No run matches name:nothing*"),
        (["status:fine"], "status:fine is not a status"),
        (["name:a", "name:b"], "a run has one name"),
        (["since:soon"], "is not a duration"),
        (["nowhere/*.tape.jsonl"], "No tape found at nowhere/*.tape.jsonl"),
        (["gone.tape.jsonl"], "No tape found at gone.tape.jsonl"),
        (["zzz"], "No run is called 'zzz'"),
        (["last", "--shard", "3/2"], "'3/2' is not a part"),
        (["last", "--frobnicate"], "No such option"),
        (["last", "--match-threshold", "2"], "match-threshold"),
        (["last", "--report", "x"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(four, store, playhead, words, said):
    ended = playhead("batch", *words, "--dry-run", "--store", store)
    assert ended.code == 2
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("max_steps = 'many'", "batch.invariants.max_steps is 'many'; expected a number"),
        ("max_steps = true", "expected a number"),
        ("must_call = 'lookup'", "expected a list of strings"),
        ("no_new_tools = 1", "expected true or false"),
        ("max_duration = 'soon'", "is not a duration"),
        ("max_step = 3", "batch.invariants.max_step is not an invariant; expected one of in_order"),
    ],
)
def test_a_wrong_invariant_in_the_config_is_named(here, store, playhead, toml, said):
    (here / "playhead.toml").write_text(f"[batch.invariants]\n{toml}\n")
    ended = playhead("batch", "tag:env=ci", "--dry-run", "--store", store)
    assert ended.code == 2
    assert said in ended.err


def verdict(tape, outcome="passed", **more):
    return Verdict(tape=tape, name=f"name of {tape}", outcome=outcome, **more)


def results(*verdicts, **more):
    order = list(dict.fromkeys(one.tape for one in verdicts))
    cases = cases_of(verdicts, order)
    return Results(cases=cases, started_at="2026-11-15T07:11:05.000000Z", took_s=1.5, **more)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        (["passed"], 0),
        (["passed", "error"], 1),
        (["unusable", "error"], 4),
        (["broken", "unusable"], 5),
        (["broken", "diverged", "unusable", "error"], 3),
    ],
)
def test_the_exit_code_says_the_worst(outcomes, code):
    found = [verdict(str(at), outcome) for at, outcome in enumerate(outcomes)]
    assert results(*found).exit_code == code


def test_a_tape_that_passes_now_and_then_is_flaky_and_counts_as_failed():
    rounds = [("passed", "x"), ("broken", "y"), ("passed", "x"), ("passed", None)]
    told = [verdict("t", one, round=at, answer=a) for at, (one, a) in enumerate(rounds, 1)]
    (case,) = results(*reversed(told)).cases
    assert (case.outcome, case.passes, case.pass_rate) == ("broken", 3, 0.75)
    assert case.flaky
    assert case.answers == 2
    assert case.worst.round == 2


def test_a_verdict_comes_back_from_json_as_it_was():
    broken = Broken(what="max_steps", limit="at most 1", found="2", call=2)
    one = verdict(
        "t", "broken", broken=(broken,), why=("a", "b"), figures={"steps": 2.0}, said=EVIL
    )
    assert verdict_from(json.loads(json.dumps(one.as_json()))) == one


@pytest.mark.parametrize("members", [{}, {"tape": "t", "name": "n", "outcome": "fine"}])
def test_what_is_no_verdict_is_not_taken_for_one(members):
    with pytest.raises((KeyError, ValueError)):
        verdict_from(members)


def test_junit_holds_whatever_a_program_printed():
    found = results(
        verdict("good"),
        verdict(EVIL, "diverged", why=(EVIL,), said=EVIL, replay="r"),
        verdict("lost", "unusable", why=("damaged",)),
    )
    root = ET.fromstring(junit_xml(found))
    suite = root.find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    assert suite.get("timestamp") == "2026-11-15T07:11:05"
    assert [one.tag for one in suite if one.tag != "testcase"] == [
        "properties",
        "system-out",
        "system-err",
    ]
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "diverged"
    assert "<script>alert(1)</script>\ufffd[2J\ufffd|`" in failure.text
    assert [one.get("type") for one in suite.iter("error")] == ["unusable"]


def test_a_page_escapes_what_a_program_printed_and_runs_nothing():
    page = results_page(results(verdict(EVIL, "broken", why=(EVIL,), said=EVIL, replay="r")))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;␛[2J" in page
    assert "default-src 'none'" in page
    assert "://" not in page


def test_a_step_summary_has_no_markup_of_a_tape():
    text = step_summary(results(verdict(EVIL, "broken", why=(EVIL,)), not_run=2))
    assert "<script" not in text
    assert "2 not run" in text
    row = text.splitlines()[-1]
    assert row.count("|") == 5


def test_a_journal_gives_back_every_whole_line(tmp_path):
    journal = Journal(tmp_path, "key")
    for number in range(3):
        journal.write({"n": number})
    journal.close(over=False)
    path = tmp_path / "batches" / "key.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    journal = Journal(tmp_path, "key")
    assert journal.read() == [{"n": 0}, {"n": 1}]
    journal.write({"n": 9})
    journal.close(over=False)
    again = Journal(tmp_path, "key")
    assert again.read() == [{"n": 0}, {"n": 1}, {"n": 9}]
    again.close(over=True)
    assert not path.exists()


def test_one_batch_does_not_run_twice_at_a_time(tmp_path):
    journal = Journal(tmp_path, "key")
    pid = os.fork()
    if pid == 0:
        try:
            Journal(tmp_path, "key")
        except UsageError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    journal.close(over=True)
