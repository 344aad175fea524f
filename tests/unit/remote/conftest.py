"""Shared stores in folders, and a store that loses its network at a chosen moment."""

import threading

import pytest

from playhead.errors import RemoteError
from playhead.remote.objects import ObjectFolder
from playhead.tape import blobs


class Torn(ObjectFolder):
    """Fails from the nth write on, as if the network were gone or the process killed."""

    def __init__(self, url, writes):
        super().__init__(url, for_writing=True)
        self.left = writes
        self.lock = threading.Lock()

    def _write(self):
        with self.lock:
            if self.left <= 0:
                raise RemoteError("the network is gone")
            self.left -= 1

    def put(self, path, content):
        self._write()
        super().put(path, content)

    def put_file(self, path, file):
        self._write()
        super().put_file(path, file)

    def create(self, path, content):
        self._write()
        return super().create(path, content)


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/shared"


@pytest.fixture
def remote(url):
    return ObjectFolder(url, for_writing=True)


@pytest.fixture
def torn(url):
    """`torn(3)`: a shared store that takes three writes and no more."""
    return lambda writes: Torn(url, writes)


@pytest.fixture
def run(forge):
    """A finished run with two blobs."""
    tape = forge("first", name="refund", tags={"env": "ci"})
    tape.tool("lookup", {"order": 7})
    path = tape.end()
    for letter in (b"x", b"y"):
        blobs.push(path, letter * 200_000)
    return path
