"""Ctrl-C comes anywhere, also in the middle of an event: the tape stays whole."""

import signal
from random import Random

import pytest

from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.care.verify import verify

pytestmark = pytest.mark.faults


class Struck(BaseException):
    """What a signal handler of the program raises."""


def strike(number, frame):
    # On a busy machine the timer also fires between the attempts, where the test does not catch the exception.
    if frame.f_code.co_filename != __file__:
        raise Struck


@pytest.fixture
def alarm():
    before = signal.signal(signal.SIGALRM, strike)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_exception_out_of_a_signal_handler_leaves_every_event_whole(tmp_path, alarm):
    run = tmp_path / "run"
    run.mkdir()
    recorder = Recorder(run=run, run_id="run", who="me")
    chance = Random(1)
    for _ in range(400):
        try:
            # Again every 50 ms: one that strikes in a destructor is swallowed by Python.
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(3e-5, 3e-4), 0.05)
            while True:
                recorder.append(NewEvent("note", {"some": "words"}))
        except Struck:
            continue
    signal.setitimer(signal.ITIMER_REAL, 0)
    recorder.close()
    damages = [str(one) for one in verify(run).damages if one.segment != "manifest.json"]
    assert damages == []
