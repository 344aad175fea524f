"""Announced calls, when the process that answers them is killed."""

import os
import signal
import socket
import sys

import pytest

from playhead.launch.sidecar.call_guard import watch_guarded
from playhead.replay.fence import barrier
from playhead.replay.fence.notifications import CallListener

# The alarm ends the program if its call is never answered.
PROGRAM = """
import signal, socket, sys
signal.alarm(60)
for _ in range(2): socket.create_connection(('127.0.0.1', int(sys.argv[1])))
"""


def test_a_call_that_a_killed_watcher_had_received_happens_and_so_do_later_ones():
    try:
        waiting = barrier.watched({**os.environ, barrier.WATCH: "1"})
    except OSError as error:
        pytest.skip(str(error))
    with socket.create_server(("127.0.0.1", 0)) as door:
        argv = [sys.executable, "-ISc", PROGRAM, str(door.getsockname()[1])]
        waiting.start(argv, os.environ, [], set(), watch=True)
        if waiting.announced is None:
            waiting.abandon()
            pytest.skip(str(waiting.unwatched))
        listener = CallListener(waiting.announced[0])

        def watch():
            assert listener.receive() is not None
            os.kill(os.getpid(), signal.SIGKILL)

        watch_guarded(listener, watch, waiting.announced[1:])
        os.close(listener.fd)
        assert os.waitpid(waiting.pid, 0)[1] == 0
