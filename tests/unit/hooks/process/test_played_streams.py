"""The streams of a taped process: its input is compared with the recorded one, its output comes in taped order."""

import os
import socket

import pytest

from playhead.hooks.process.played_streams import PlayedInput, PlayedStreams
from playhead.hooks.process.stage import is_silent

THEN = (
    b'{"type":"system","session_id":"a6574f6c-b5df-4d1e-8c7d-fd80e9544d88"}\n'
    b'{"type":"result","duration_api_ms":3842,"result":"Two files."}\n'
)
NOW = (
    b'{"type":"system","session_id":"11111111-b5df-4d1e-8c7d-fd80e9544d88"}\n'
    b'{"type":"system","subtype":"thinking_tokens","estimated_tokens":9}\n'
    b'{"type":"result","duration_api_ms":22,"result":"Two files."}\n'
)


@pytest.mark.parametrize("has_own_clock", [True, False])
def test_durations_in_the_input_count_only_if_the_writer_has_the_clock_of_the_tape(has_own_clock):
    heard = PlayedInput(THEN, has_own_clock=has_own_clock)
    for line in NOW.splitlines(keepends=True):
        heard.add(line)
        if has_own_clock:
            assert heard.difference(70) is None
    assert (heard.difference(len(THEN)) is None) is has_own_clock


def test_another_result_is_a_difference_whatever_clock_the_writer_has():
    heard = PlayedInput(THEN, has_own_clock=True)
    heard.add(NOW.replace(b"Two", b"Six"))
    assert heard.difference(len(THEN)) is not None


@pytest.mark.parametrize("made", [os.pipe, lambda: [one.detach() for one in socket.socketpair()]])
def test_stderr_is_shown_when_the_stdout_before_it_was_read(made):
    streams = PlayedStreams(in_turn=True)
    ends = {}
    for stream in ("stdout", "stderr"):
        ends[stream], written = made()
        streams.take(stream, written, 10)
        streams.queue(stream, memoryview(stream.encode()))
    streams.give()
    assert is_silent(ends["stderr"])
    assert os.read(ends["stdout"], 100) == b"stdout"
    while streams.queues:
        streams.give()
    assert os.read(ends["stderr"], 100) == b"stderr"
    for fd in (*ends.values(), *streams.ends.values()):
        os.close(fd)


def test_a_program_that_reads_stderr_first_gets_it_after_a_while():
    streams = PlayedStreams(in_turn=True)
    out, err = os.pipe(), os.pipe()
    for stream, (_, written) in (("stdout", out), ("stderr", err)):
        streams.take(stream, written, 10)
        streams.queue(stream, memoryview(b"text"))
    while streams.queues:
        streams.give()
    assert os.read(err[0], 100) == os.read(out[0], 100) == b"text"
    for fd in (*out, *err):
        os.close(fd)
