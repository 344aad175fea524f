"""Other users of the machine at the proxy's ports."""

import os
import socket
import subprocess
import sys

import pytest

from playhead.launch.proxy import peer_user
from playhead.launch.proxy.peer_user import may_connect, user_of

# In bash, which every user may execute.
CLIENT = 'exec 3<>"/dev/tcp/127.0.0.1/$1"; echo connected; read -r _'


def connected(user: int):
    """A connection from a process of this user: the accepted socket and the process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        client = subprocess.Popen(
            ["/bin/bash", "-c", CLIENT, "client", str(listener.getsockname()[1])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=user if os.geteuid() == 0 else None,
            cwd="/",
        )
        client.stdout.readline()
        return listener.accept()[0], client


@pytest.mark.skipif(sys.platform != "linux", reason="only on macOS")
@pytest.mark.parametrize("user", [os.geteuid(), 65534])
def test_the_kernel_says_who_has_connected(user):
    if user != os.geteuid() and os.geteuid() != 0:
        user = os.geteuid()
    connection, client = connected(user)
    with connection, client:
        assert user_of(connection) == user
        client.stdin.close()


@pytest.mark.parametrize(
    ("mine", "theirs", "may"),
    [(1000, 1000, True), (1000, 0, True), (1000, 1001, False), (1000, None, True), (0, 1001, True)],
)
def test_only_the_user_of_the_run_and_root_may_connect(monkeypatch, mine, theirs, may):
    monkeypatch.setattr(os, "geteuid", lambda: mine)
    monkeypatch.setattr(peer_user, "user_of", lambda _: theirs)
    with socket.socket() as connection:
        assert may_connect(connection) is may
