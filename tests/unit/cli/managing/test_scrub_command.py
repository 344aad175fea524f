"""`playhead scrub`: afterwards the text is nowhere in the store, and the tape is whole."""

import json

import pytest

from playhead.tape.reader import Tape

TEXT = "the customer is called Zebediah Quux"


def found_in(store):
    return [one for one in store.rglob("*") if one.is_file() and b"Zebediah" in one.read_bytes()]


def recorded(forge):
    tape = forge(name=f"about {TEXT}", tags={"who": TEXT})
    tape.tool("lookup", {"note": TEXT}, value={"answer": [TEXT, 1]})
    call = tape.call("http", "GET x", {"url": "http://x", "headers": [["x-note", TEXT]]})
    tape.chunk(call, f"body: {TEXT}!".encode())
    tape.outcome(call, status=200)
    tape.event("output", {"stream": "stdout", "text": f"{TEXT}\n"})
    return tape.end()


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_text_is_gone_from_the_whole_store_and_the_tape_is_whole(
    forge, playhead, store, is_sealed
):
    run = recorded(forge)
    if is_sealed:
        assert playhead("seal", run.name, "--store", store).code == 0
    playhead("note", run.name, TEXT, "--store", store)
    playhead("search", "Zebediah", "--all", "--store", store)
    before = [(one.seq, one.kind) for one in Tape(run).events()]
    done = playhead("scrub", run.name, "--text", TEXT, "--json", "--store", store)
    assert done.code == 0, done.err
    assert json.loads(done.out)["events"] >= 4
    playhead("search", "lookup", "--all", "--store", store)
    assert found_in(store) == []
    assert [(one.seq, one.kind) for one in Tape(run).events()] == before
    assert "intact" in playhead("verify", run.name, "--store", store).out
    assert (run / "tape.jsonl.zst").exists() is is_sealed


def test_a_rule_takes_out_what_it_matches_also_in_large_values(forge, playhead, store):
    tape = forge()
    tape.tool("lookup", {}, value=("x" * 100_000) + "ACME-123456" + ("y" * 100_000))
    run = tape.end()
    done = playhead("scrub", run.name, "--rule", "ACME-[0-9]{6}", "--store", store)
    assert done.code == 0, done.err
    assert not [one for one in run.rglob("*") if one.is_file() and b"ACME-1" in one.read_bytes()]
    assert "intact" in playhead("verify", run.name, "--store", store).out


def test_without_options_the_rules_of_today_are_applied(forge, playhead, store):
    tape = forge()
    tape.tool("lookup", {"password": "correct-horse-battery"}, value=1)
    run = tape.end()
    assert playhead("scrub", run.name, "--store", store).code == 0
    assert b"correct-horse" not in b"".join(one.read_bytes() for one in run.glob("tape*"))


@pytest.mark.parametrize("words", [["--rule", "["], ["--text", ""]])
def test_what_cannot_be_taken_out_is_a_usage_error(forge, playhead, store, words):
    run = recorded(forge)
    done = playhead("scrub", run.name, *words, "--store", store)
    assert (done.code, found_in(store) != []) == (2, True)


def test_a_damaged_run_is_refused(forge, playhead, store):
    run = recorded(forge)
    (segment,) = run.glob("tape-*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b"lookup", b"backup"))
    done = playhead("scrub", run.name, "--text", TEXT, "--store", store)
    assert (done.code, "repair" in done.err) == (2, True)
