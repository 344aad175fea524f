"""verify, repair, seal, unseal and keep."""

import json

import pytest

from playhead.testing import Reply


@pytest.fixture
def tape(forge):
    tape = forge()
    tape.llm("hello", Reply(text="hi"))
    tape.end()
    return tape


def spoil(tape, line=3):
    raw = tape.file.read_bytes().splitlines(keepends=True)
    raw[line - 1] = raw[line - 1].replace(b"refund", b"refuse", 1)
    tape.file.write_bytes(b"".join(raw))


def test_a_whole_tape_is_said_to_be_whole(tape, store, playhead):
    ended = playhead("verify", "last", "--store", store)
    assert ended.code == 0
    assert ended.out == f"✓ 20261115-071105-k3f9  intact: {tape.seq} events, 1 segment\n"


def test_an_edited_line_is_named_by_segment_and_line(tape, store, playhead):
    spoil(tape, line=3)
    ended = playhead("verify", "last", "--store", store)
    assert ended.code == 4
    assert "segment 4194999, line 3" in ended.out
    assert "playhead repair 20261115-071105-k3f9" in ended.out
    (found,) = json.loads(playhead("verify", "last", "--json", "--store", store).out)
    assert found["ok"] is False
    assert found["damages"][0]["line"] == 3


def test_all_runs_are_checked_and_only_damaged_ones_are_listed(forge, tape, store, playhead):
    forge("whole").end()
    assert playhead("verify", "--all", "--store", store).out == "2 of 2 runs are intact.\n"
    spoil(tape)
    ended = playhead("verify", "--all", "--store", store)
    assert ended.code == 4
    assert "✗ 20261115-071105-k3f9" in ended.out
    assert "✓" not in ended.out
    assert "1 of 2 runs are intact." in ended.out


def test_a_folder_without_a_tape_does_not_keep_the_others_from_being_checked(tape, store, playhead):
    (store / "runs" / "empty").mkdir()
    ended = playhead("verify", "--all", "--json", "--store", store)
    assert ended.code == 4
    assert {row["id"]: row["ok"] for row in json.loads(ended.out)} == {
        "20261115-071105-k3f9": True,
        "empty": False,
    }


def test_a_run_and_all_runs_cannot_be_asked_for_together(tape, store, playhead):
    assert playhead("verify", "last", "--all", "--store", store).code == 2


@pytest.mark.parametrize("verb", ["verify", "seal"])
def test_without_a_run_the_last_is_meant(tape, store, playhead, verb):
    assert "20261115-071105-k3f9" in playhead(verb, "--store", store).out


def test_repair_saves_what_can_be_read_and_moves_the_damaged_aside(tape, store, playhead):
    raw = tape.file.read_bytes()
    tape.file.write_bytes(raw[:-20])
    ended = playhead("repair", "last", "--store", store)
    assert ended.code == 0
    assert "repaired" in ended.out
    assert "moved aside: tape-4194999.jsonl.damaged." in ended.out
    assert playhead("verify", "last", "--store", store).code == 0
    told = json.loads(playhead("repair", "last", "--json", "--store", store).out)
    assert told["changed"] is False


def test_repair_leaves_a_healthy_tape_alone(tape, store, playhead):
    before = tape.file.read_bytes()
    assert "nothing to repair" in playhead("repair", "last", "--store", store).out
    assert tape.file.read_bytes() == before


def test_seal_and_unseal_are_there_and_back(tape, store, playhead):
    raw = tape.file.read_bytes()
    shown = playhead("show", "last", "--store", store).out
    sealed = playhead("seal", "last", "--store", store)
    assert sealed.code == 0
    assert f"is sealed: {tape.seq} events" in sealed.out
    assert playhead("show", "last", "--store", store).out == shown
    assert playhead("verify", "last", "--store", store).code == 0
    assert "is unsealed: tape-4194999.jsonl" in playhead("unseal", "last", "--store", store).out
    assert tape.file.read_bytes() == raw
    assert "is not sealed" in playhead("unseal", "last", "--store", store).out


def test_a_damaged_run_is_not_sealed(tape, store, playhead):
    spoil(tape)
    ended = playhead("seal", "last", "--store", store)
    assert ended.code == 4
    assert "playhead repair" in ended.err


def test_keep_is_remembered_and_can_be_undone(tape, store, playhead):
    def kept():
        (row,) = json.loads(playhead("list", "--json", "--store", store).out)
        return row["keep"]

    assert not kept()
    assert playhead("keep", "last", "--store", store).code == 0
    assert kept()
    assert playhead("keep", "last", "--undo", "--store", store).code == 0
    assert not kept()


def test_verify_says_that_one_event_was_lost(playhead, forge, store):
    tape = forge(lost=1)
    tape.end()
    assert (
        "incomplete: 1 event was lost" in playhead("verify", tape.path.name, "--store", store).out
    )


@pytest.mark.parametrize("counted_by", ["manifest", "segment"])
def test_verify_says_how_many_events_were_lost_while_recording(playhead, forge, store, counted_by):
    tape = forge(lost=2808 if counted_by == "manifest" else 0)
    if counted_by == "segment":
        tape.event("segment.end", {"events": tape.seq + 1, "lost": 2808})
    else:
        tape.end()
    now = playhead("verify", tape.path.name, "--store", store)
    assert now.code == 0
    assert "incomplete: 2,808 events were lost" in now.out
    assert "✓" not in now.out
    assert (
        json.loads(playhead("verify", tape.path.name, "--store", store, "--json").out)[0]["lost"]
        == 2808
    )
