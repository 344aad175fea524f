"""Exceptions of signal handlers that interrupt our own code."""

import signal
import traceback

import pytest

from playhead.host import interrupts


@pytest.fixture
def handler():
    def handle(number, frame):
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGUSR1, handle)
    yield handle
    signal.signal(signal.SIGUSR1, before)


def interrupted(kind):
    """An exception that came while our own code handled another one."""
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt from None
        signal.raise_signal(signal.SIGUSR1)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_an_interrupt_shows_neither_our_frames_nor_our_exceptions(kind):
    program = ValueError("the program's own")
    with pytest.raises(kind) as raised:
        interrupted(kind)
    error = raised.value
    interrupts.strip_if_interrupt(error, program)
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert (error.__context__, names) == (program, [] if kind is KeyboardInterrupt else ["handle"])


def test_another_error_stays_as_it_is():
    with pytest.raises(ZeroDivisionError) as raised:
        interrupts.strip_if_interrupt(1 / 0, None)
    before = raised.value.__traceback__
    interrupts.strip_if_interrupt(raised.value, ValueError())
    assert raised.value.__traceback__ is before
    assert raised.value.__context__ is None
