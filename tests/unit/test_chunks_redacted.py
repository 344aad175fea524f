"""Secrets in streams are hidden before they are written, wherever the pieces are cut."""

from playhead.chunks import ChunkBuffer, as_bytes
from playhead.recorder import Recorder
from playhead.redact import Redactor
from playhead.tape.reader import Tape

SECRET = b"sk-ant-api03-" + b"Ab1" * 31


def written(tmp_path, pieces):
    recorder = Recorder(run=tmp_path, run_id="r", who="test", redactor=Redactor(key=b"key"))
    buffer = ChunkBuffer(recorder, 1, 0)
    buffer._last = 1 << 62  # nothing is due yet: all of it goes into one event
    for piece in pieces:
        buffer.add("body", piece)
    buffer.flush()
    recorder.close()
    return [event.data for event in Tape(tmp_path).events() if event.kind == "chunk"]


def test_harmless_pieces_keep_their_bounds(tmp_path):
    (data,) = written(tmp_path, [b"one", b"two, ", b"three"])
    assert as_bytes(data) == b"onetwo, three"
    assert data["sizes"] == [3, 5, 5]
    assert len(data["at_ns"]) == 3


def test_a_secret_within_a_piece_leaves_the_bounds_of_the_others(tmp_path):
    (data,) = written(tmp_path, [b"one ", SECRET + b" ", b"three"])
    raw = as_bytes(data)
    assert SECRET not in raw
    assert raw.startswith(b"one [redacted:")
    assert data["sizes"][0] == 4
    assert data["sizes"][2] == 5
    assert sum(data["sizes"]) == len(raw)


def test_a_secret_across_two_pieces_is_hidden_whole(tmp_path):
    (data,) = written(tmp_path, [b"one " + SECRET[:40], SECRET[40:] + b" three"])
    raw = as_bytes(data)
    assert SECRET[:40] not in raw
    assert SECRET[40:] not in raw
    assert raw.startswith(b"one [redacted:")
    assert raw.endswith(b" three")
    assert data["sizes"] == [len(raw)]
