"""PyMongo sends the ids of its requests again, whichever thread draws first."""

import random
import struct
from types import ModuleType

import pytest

from playhead.hooks.stream.mongo_ids import hook

# The functions of pymongo.message 4.20 that draw ids. `_op_msg_uncompressed` may be that of its C extension, which
# draws below every hook.
message = ModuleType("pymongo.message")


def _op_msg_uncompressed(flags, command):
    number = random.getrandbits(31)
    return number, struct.pack("<iiii", 20, number, 0, 2013) + command, 20, 4


message._randint = lambda: random.getrandbits(31)
message._op_msg_uncompressed = message._batched_op_msg = _op_msg_uncompressed


@pytest.fixture
def twice(twice_with):
    return twice_with((hook, message))


def test_an_id_of_a_request_is_sent_again_in_its_message(twice):
    then, now = twice(
        lambda: [message._op_msg_uncompressed(0, b"ping") for _ in range(3)] + [message._randint()]
    )
    assert now == then
    for number, data, *rest in now[:3]:
        assert struct.unpack("<iiii", data[:16]) == (20, number, 0, 2013)
        assert (data[16:], rest) == (b"ping", [20, 4])
    assert twice.missed == 0
