"""Which sockets listen on a port, as the kernel says."""

import os
import socket

import pytest

from playhead.replay.fence import sock_diag


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
)
def test_listeners_of_both_families_are_found(family, host):
    with socket.socket(family) as made, sock_diag.channel() as channel:
        made.bind((host, 0))
        port = made.getsockname()[1]
        assert sock_diag.listeners(channel, port) == frozenset()  # bound, and does not listen
        made.listen()
        assert sock_diag.listeners(channel, port) == {os.fstat(made.fileno()).st_ino}
