"""Pieces of a stream are on the tape as they came; secrets are not, wherever the pieces are cut."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead.recording import chunks
from playhead.recording.chunks import ChunkBuffer, as_bytes, as_text, streams_of
from playhead.recording.recorder import Recorder
from playhead.redact import Redactor, StreamCleaner
from playhead.tape.reader import Tape

SECRET = b"sk-ant-api03-" + b"Ab1" * 31


def recorder_in(folder, **more):
    redactor = Redactor(key=b"key", **more)
    return Recorder(run=folder, run_id="r", who="test", redactor=redactor)


def chunks_in(folder):
    tape = Tape(folder)
    found = [event.data for event in tape.events() if event.kind == "chunk"]
    assert list(tape.damage) == []
    return found


def written(folder, pieces, stream="body"):
    """All of them in one event: nothing is due before the end."""
    recorder = recorder_in(folder)
    buffer = ChunkBuffer(recorder, 1, 0)
    buffer._last = 1 << 62
    for piece in pieces:
        buffer.add(stream, piece)
    buffer.finish()
    recorder.close()
    return chunks_in(folder)


def test_harmless_pieces_keep_their_bounds(tmp_path):
    (data,) = written(tmp_path, [b"one", b"two, ", b"three"])
    assert as_bytes(data) == b"onetwo, three"
    assert data["sizes"] == [3, 5, 5]
    assert len(data["at_ns"]) == 3


def test_a_secret_within_a_piece_leaves_the_bounds_of_the_others(tmp_path):
    (data,) = written(tmp_path, [b"one ", SECRET + b" ", b"three"])
    raw = as_bytes(data)
    assert SECRET not in raw
    assert raw.startswith(b"one sk-ant-api03-redacted")
    assert data["sizes"][0] == 4
    assert data["sizes"][2] == 5
    assert sum(data["sizes"]) == len(raw)


def test_a_secret_across_two_pieces_is_hidden_whole(tmp_path):
    (data,) = written(tmp_path, [b"one " + SECRET[:40], SECRET[40:] + b" three"])
    raw = as_bytes(data)
    assert SECRET[:40] not in raw
    assert SECRET[40:] not in raw
    assert raw.startswith(b"one sk-ant-api03-redacted")
    assert raw.endswith(b"x three")
    assert data["sizes"] == [len(raw) - 6, 6]


def test_the_first_piece_is_written_at_once(tmp_path):
    recorder = recorder_in(tmp_path)
    ChunkBuffer(recorder, 1, 0).add("body", b"first")
    assert as_bytes(chunks_in(tmp_path)[0]) == b"first"
    recorder.close()


def test_pieces_that_wait_are_written_soon_by_themselves(tmp_path):
    recorder = recorder_in(tmp_path)
    buffer = ChunkBuffer(recorder, 1, 0)
    done = threading.Event()
    append = recorder.append

    def append_and_look(entry):
        seq = append(entry)
        if entry.data.get("text") == "second":
            done.set()
        return seq

    recorder.append = append_and_look
    buffer.add("body", b"first")
    buffer.add("body", b"second")
    assert done.wait(20)
    recorder.close()
    assert [as_bytes(data) for data in chunks_in(tmp_path)] == [b"first", b"second"]


def test_streams_of_one_call_are_told_apart(tmp_path):
    recorder = recorder_in(tmp_path)
    buffer = ChunkBuffer(recorder, 1, 0)
    buffer._last = 1 << 62
    for stream, piece in [("stdout", b"a"), ("stderr", b"b"), ("stderr", b"c"), ("stdout", b"d")]:
        buffer.add(stream, piece)
    buffer.finish()
    recorder.close()
    assert [(data["stream"], as_bytes(data)) for data in chunks_in(tmp_path)] == [
        ("stdout", b"a"),
        ("stderr", b"bc"),
        ("stdout", b"d"),
    ]


def test_an_empty_message_is_a_message(tmp_path):
    (data,) = written(tmp_path, [b"a", b"", b"b"], stream="received")
    assert data["sizes"] == [1, 0, 1]


def test_a_message_is_whole_and_waits_for_nothing(tmp_path):
    recorder = recorder_in(tmp_path)
    ChunkBuffer(recorder, 1, 0).add("received", b"the beginning: sk-ant-")
    assert as_bytes(chunks_in(tmp_path)[0]) == b"the beginning: sk-ant-"
    recorder.close()


@given(st.binary(max_size=50))
def test_bytes_come_back_from_text_and_from_base64(raw):
    assert as_bytes(as_text(raw)) == raw


def test_what_may_be_half_a_secret_waits_for_the_other_half(tmp_path):
    recorder = recorder_in(tmp_path)
    buffer = ChunkBuffer(recorder, 1, 0)
    buffer.add("body", b"the key is " + SECRET[:30])
    assert chunks_in(tmp_path) == []
    buffer._last = 0
    buffer.add("body", SECRET[30:] + b" and more")
    (data,) = chunks_in(tmp_path)
    assert as_bytes(data).startswith(b"the key is sk-ant-api03-redacted0anthropic0")
    assert as_bytes(data).endswith(b"x and more")
    recorder.close()


def test_what_only_looked_like_a_beginning_is_written_as_it_was(tmp_path):
    (data,) = written(tmp_path, [b"sk-", b"learn is a library"])
    assert as_bytes(data) == b"sk-learn is a library"
    assert data["sizes"] == [3, 18]


SECRETS = [
    SECRET,
    b"ghp_" + b"a1B2" * 9,
    b"AKIA" + b"A1B2" * 4,
    b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + b"x1" * 20,
    b"SG." + b"a1" * 11 + b"." + b"b" * 43,
]
SCENES = [
    *((b"before " + secret + b" after", secret) for secret in SECRETS),
    (b"Authorization: Bearer abcDEF0123456789xyz\r\n", b"abcDEF0123456789xyz"),
    (b"postgres://bob:hunter2hunter2@db/app", b"hunter2hunter2"),
    (b'{"password": "correct horse battery", "a": 1}', b"correct horse battery"),
    (b"DB_PASSWORD=correcthorse\n", b"correcthorse"),
    (b"a value-of-a-variable b", b"value-of-a-variable"),
    (
        b"x\n-----BEGIN PRIVATE KEY-----\n" + b"MIIEvQ" * 30 + b"\n-----END PRIVATE KEY-----\ny",
        b"MIIEvQ" * 30,
    ),
]


@pytest.mark.parametrize(("whole", "secret"), SCENES)
def test_a_secret_cut_anywhere_is_hidden_and_nothing_else_is_lost(whole, secret):
    redactor = Redactor(key=b"key", variables={"A_TOKEN": "value-of-a-variable"})
    at = whole.index(secret)
    before, after = whole[:at], whole[at + len(secret) :]

    @settings(max_examples=60)
    @given(st.lists(st.integers(0, len(whole)), max_size=5))
    def hidden(cuts):
        places = [0, *sorted(cuts), len(whole)]
        pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
        cleaner = StreamCleaner(redactor)
        out = []
        for when, piece in enumerate(pieces):
            out += cleaner.feed([(piece, when)])
        out += cleaner.feed([], last=True)
        assert [when for _, when in out] == sorted(when for _, when in out)
        shown = b"".join(piece for piece, _ in out)
        # The first letters of a beginning that everybody knows may have gone before.
        assert secret[8:] not in shown
        assert b"redacted" in shown
        if b"PRIVATE" not in whole:
            assert shown.startswith(before[:4])
            assert shown.endswith(after)

    hidden()


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_a_stream_without_a_secret_comes_out_piece_by_piece_as_it_went_in(pieces):
    cleaner = StreamCleaner(Redactor(key=b"key"))
    out = []
    for when, piece in enumerate(pieces):
        out += cleaner.feed([(piece, when)])
    out += cleaner.feed([], last=True)
    if b"redacted" not in b"".join(piece for piece, _ in out):
        assert out == [(piece, when) for when, piece in enumerate(pieces)]


def test_a_stream_that_never_stops_looking_like_a_secret_is_not_held_for_ever():
    cleaner = StreamCleaner(Redactor(key=b"key"))
    out = []
    for when in range(100):
        out += cleaner.feed([(b"eyJ" + b"a" * 997, when)])
    assert len(out) > 80


def test_a_killed_process_leaves_the_pieces_that_had_come(tmp_path):
    program = """
        import os, signal, sys
        from pathlib import Path
        from playhead.recording.chunks import ChunkBuffer
        from playhead.recording.recorder import Recorder
        recorder = Recorder(run=Path(sys.argv[1]), run_id="r", who="x")
        buffer = ChunkBuffer(recorder, 1, 0)
        for n in range(1000):
            buffer._last = 0
            buffer.add("body", b"%d\\n" % n)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    raw = b"".join(as_bytes(data) for data in chunks_in(tmp_path))
    assert raw == b"".join(b"%d\n" % n for n in range(1000))


def test_a_forked_child_has_a_thread_of_its_own_for_what_waits(tmp_path):
    recorder = recorder_in(tmp_path)
    ChunkBuffer(recorder, 1, 0).add("body", b"starts the thread")
    child = os.fork()
    if child == 0:
        buffer = ChunkBuffer(recorder, "1:1", 0)
        buffer.add("body", b"one")
        buffer.add("body", b"two")
        buffer.finish()
        recorder.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    recorder.close()
    assert [as_bytes(data) for data in chunks_in(tmp_path)] == [
        b"starts the thread",
        b"one",
        b"two",
    ]


HEAD = {"stream": "head", "value": {"status": 200, "headers": []}, "at_ns": [1]}


def test_a_short_answer_waits_for_its_outcome_and_is_clean(tmp_path, monkeypatch):
    # On a busy machine our thread may write it before we get to its end.
    monkeypatch.setattr(chunks._flusher, "push", lambda buffer: None)
    recorder = recorder_in(tmp_path)
    buffer = ChunkBuffer(recorder, 1, 0, HEAD)
    buffer.add("body", b"one ")
    buffer.add("body", SECRET)
    head, body = streams_of(recorder, buffer.finish(), None)
    recorder.close()
    assert head == HEAD
    assert body["stream"] == "body"
    assert as_bytes(body).startswith(b"one sk-ant-api03-redacted")
    assert len(body["sizes"]) == 2
    assert chunks_in(tmp_path) == []


def test_a_short_answer_that_takes_its_time_is_on_the_tape_before_its_outcome(tmp_path):
    recorder = recorder_in(tmp_path)
    buffer = ChunkBuffer(recorder, 1, 0, HEAD)
    buffer.flush()  # by our thread, after some milliseconds
    buffer.add("body", b"late")
    assert buffer.finish() is None
    recorder.close()
    head, body = chunks_in(tmp_path)
    assert head == {"call": 1, **HEAD}
    assert (body["call"], as_bytes(body)) == (1, b"late")


def test_a_program_that_forks_is_not_warned_of_our_thread(guest_python):
    program = """
    import os
    from playhead.recording.chunks import flush_soon

    class Waiting:
        def flush(self):
            pass

    for _ in range(20):
        flush_soon(Waiting())
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    """
    source = str(Path(__file__).parents[3] / "src")
    done = subprocess.run(
        [guest_python, "-W", "error", "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": source}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
