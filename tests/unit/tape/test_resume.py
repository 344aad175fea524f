"""A recording that goes on with an earlier run counts on from it."""

from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.tape.resume import next_seq_of
from playhead.tape.sealed.seal import seal


def test_the_sequence_goes_on_after_the_highest_seq_of_all_segments(small):
    assert next_seq_of(small.path) == 6


def test_a_torn_tail_is_not_counted(small):
    root = small.segments[0]
    root.path.write_bytes(b"".join(root.lines)[:-20])
    assert next_seq_of(small.path) == 5


def test_the_sequence_goes_on_after_a_sealed_run(small):
    seal(small.path)
    assert next_seq_of(small.path) == 6


def test_a_sealed_run_is_gone_on_with_by_a_process_of_the_same_pid(tmp_path):
    for generation in range(2):
        first = next_seq_of(tmp_path)
        recorder = Recorder(
            run=tmp_path, run_id="r", who="x", first_seq=first, generation=generation
        )
        recorder.append(NewEvent("note", generation))
        recorder.close()
        if not generation:
            (tmp_path / "manifest.json").write_text('{"run":"r","status":"ok"}')
            seal(tmp_path)
    tape = Tape(tmp_path)
    notes = [event.data for event in tape.events() if event.kind == "note"]
    assert notes == [0, 1]
    assert len(tape.segments()) == 2
    assert tape.event(4).data == 1
    assert verify(tmp_path).ok
