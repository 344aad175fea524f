"""Readings of the machine are the same again: load, processor time, memory, free space, the name of the host."""

import os
import random
import resource
import shutil
import socket
from types import ModuleType
from typing import NamedTuple

import pytest

from playhead.hooks.ambient.machine_reads import (
    hook_os,
    hook_psutil,
    hook_resource,
    hook_socket,
)


class Memory(NamedTuple):
    total: int
    available: int


# Functions of psutil 7, with a value of their own for each call.
psutil = ModuleType("psutil")
psutil.virtual_memory = lambda: Memory(8, random.randrange(10**9))
psutil.cpu_percent = lambda interval=None, percpu=False: (
    [random.random()] if percpu else random.random()
)


class Process:
    def memory_info(self):
        return Memory(1, random.randrange(10**9))


psutil.Process = Process


@pytest.fixture
def twice(twice_with):
    return twice_with(
        (hook_os, os), (hook_resource, resource), (hook_socket, socket), (hook_psutil, psutil)
    )


READINGS = {
    "load": lambda: os.getloadavg(),
    "times": lambda: os.times(),
    "free space": lambda: shutil.disk_usage("/"),
    "memory": lambda: resource.getrusage(resource.RUSAGE_SELF),
    "host": lambda: socket.gethostname(),
    "memory of psutil": lambda: psutil.virtual_memory(),
    "load of psutil": lambda: psutil.cpu_percent(0.1),
    "memory of a process": lambda: psutil.Process().memory_info(),
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_a_reading_of_the_machine_is_the_same_again(twice, reading):
    then, now = twice(lambda: [reading() for _ in range(3)])
    assert now == then
    assert list(map(type, now)) == list(map(type, then))
    assert twice.served == 3
    assert twice.missed == 0


def test_lists_of_readings_are_those_of_the_machine(twice):
    then, now = twice(lambda: psutil.cpu_percent(percpu=True))
    assert type(now) is type(then) is list
    assert now != then
