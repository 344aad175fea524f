"""What is drawn by chance is drawn again: bytes, secrets, uuids of Python's and of Rust's."""

import os
import random
import secrets
import ssl
import uuid
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
import uuid_utils
import uuid_utils.compat

from playhead.hooks.ambient.entropy_reads import (
    hook_fastuuid,
    hook_os,
    hook_ssl,
    hook_uuid,
    hook_uuid_utils,
)
from playhead.hooks.ambient.random_draws import hook_random
from playhead.recording import lanes

# The functions of fastuuid 0.14, which litellm uses. Like fastuuid, it draws below every hook.
_below = random.Random(os.urandom(8))
fastuuid = ModuleType("fastuuid")
fastuuid.UUID = uuid.UUID
fastuuid.uuid4 = lambda: uuid.UUID(int=_below.getrandbits(128), version=4)
fastuuid.uuid_v1mc = lambda: uuid.UUID(int=_below.getrandbits(128), version=1)
fastuuid.uuid7_bulk = lambda n: [fastuuid.uuid4() for _ in range(n)]
fastuuid.uuid4_as_strings_bulk = lambda n: [fastuuid.uuid4().hex for _ in range(n)]


@pytest.fixture
def twice(twice_with):
    return twice_with(
        (hook_os, os),
        (hook_ssl, ssl),
        (hook_random, random),
        (hook_uuid, uuid),
        (hook_uuid_utils, uuid_utils),
        (hook_uuid_utils, uuid_utils.compat),
        (hook_fastuuid, fastuuid),
    )


DRAWS = {
    "urandom": lambda: os.urandom(16),
    "no bytes": lambda: os.urandom(0),
    "getrandom": lambda: os.getrandom(5, os.GRND_NONBLOCK),
    "ssl": lambda: ssl.RAND_bytes(8),
    "uuid1": lambda: uuid.uuid1(),
    "uuid4": lambda: uuid.uuid4(),
    "token_hex": lambda: secrets.token_hex(),
    "token_urlsafe": lambda: secrets.token_urlsafe(9),
    "choice of secrets": lambda: secrets.choice("abcdefghijklmnopqrstuvwxyz"),
    "randbelow": lambda: secrets.randbelow(10**9),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "rust uuid4": lambda: uuid_utils.uuid4(),
    "rust uuid7": lambda: uuid_utils.uuid7(),
    "uuid4 of litellm": lambda: fastuuid.uuid4(),
    "uuid_v1mc of fastuuid": lambda: fastuuid.uuid_v1mc(),
    "several of fastuuid": lambda: fastuuid.uuid7_bulk(3),
    "several texts of fastuuid": lambda: fastuuid.uuid4_as_strings_bulk(3),
    "rust uuid7 as langchain has it": lambda: uuid_utils.compat.uuid7(),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_what_was_drawn_is_drawn_again(twice, draw):
    then, now = twice(lambda: [draw() for _ in range(5)])
    assert now == then
    assert list(map(type, now)) == list(map(type, then))
    assert twice.missed == 0


def test_the_standard_uuid_is_what_compat_gives(twice):
    then, now = twice(lambda: type(uuid_utils.compat.uuid7()))
    assert then is now is uuid.UUID


def test_a_uuid_of_a_name_has_nothing_to_do_with_chance(twice):
    then, now = twice(lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "x"))
    assert now == then
    assert twice.kinds() <= {"generator"}


def test_a_uuid_of_a_node_that_the_program_names_is_the_same_again(twice):
    then, now = twice(lambda: uuid.uuid1(node=5, clock_seq=7))
    assert now == then
    assert then.node == 5


def test_jobs_of_a_pool_draw_their_own_again(twice):
    def program():
        with lanes.lane("main"), ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda _: (uuid.uuid4(), secrets.token_hex(4)), range(20)))

    then, now = twice(program)
    assert now == then


def test_a_library_that_draws_no_more_shifts_nothing(twice):
    def library():
        return uuid.uuid4()

    def program():
        return uuid.uuid4()

    then, now = twice(lambda: (library(), program())[1], program)
    assert now == then


def test_code_that_wants_more_bytes_than_then_gets_as_many_as_it_wants(twice):
    def draw(size):
        return os.urandom(size)

    _, now = twice(lambda: draw(16), lambda: draw(32))
    assert len(now) == 32


def test_what_is_not_on_the_tape_is_the_same_in_every_replay(twice):
    def program():
        return os.urandom(8), uuid.uuid4(), uuid.uuid1(), uuid_utils.uuid7()

    _, first = twice(lambda: None, program)
    _, second = twice(lambda: None, program)
    assert first == second
    assert len({str(one) for one in first}) == 4
    assert (first[1].version, first[2].version, first[3].version) == (4, 1, 7)


def test_uninstalling_puts_back_the_very_objects(twice):
    before = [os.urandom, random._urandom, uuid.uuid1, uuid_utils.uuid7, ssl.RAND_bytes]
    twice(lambda: None)
    after = [os.urandom, random._urandom, uuid.uuid1, uuid_utils.uuid7, ssl.RAND_bytes]
    assert after == before
