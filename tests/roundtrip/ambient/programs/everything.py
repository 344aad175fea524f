"""Prints whatever clocks and chance have to say, in every kind of concurrency."""
# ruff: noqa: DTZ002, DTZ005, DTZ011, LOG015, SIM905  it prints what a program may print

import asyncio
import concurrent.futures
import datetime
import email.utils
import gzip
import hashlib
import logging
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from datetime import timezone

logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stdout, level="INFO")


class Moment(datetime.datetime):
    pass


def clocks():
    began, steady = time.perf_counter(), time.monotonic_ns()
    yield time.time(), time.time_ns(), time.ctime(), time.asctime(), time.strftime("%c")
    yield time.localtime(), time.gmtime(), time.clock_gettime(time.CLOCK_REALTIME)
    yield datetime.datetime.now(), datetime.datetime.now(timezone.utc), datetime.datetime.today()
    yield Moment.now(), Moment.now(timezone.utc), type(Moment.now()).__name__, datetime.date.today()
    yield email.utils.formatdate(), email.utils.localtime()
    yield hashlib.sha256(gzip.compress(b"with the time in its head")).hexdigest()
    yield time.perf_counter() - began, time.monotonic_ns() - steady, time.process_time()


def chances():
    shuffled = list(range(20))
    random.shuffle(shuffled)
    yield (
        uuid.uuid1(),
        uuid.uuid4(),
        uuid.uuid3(uuid.NAMESPACE_DNS, "x"),
        uuid.uuid5(uuid.NAMESPACE_DNS, "x"),
    )
    yield secrets.token_hex(8), secrets.choice("abcdef"), os.urandom(4), secrets.randbelow(10**6)
    yield random.random(), random.gauss(0, 1), random.randint(0, 10**6), random.randbytes(3)
    yield random.Random().random(), random.SystemRandom().random(), shuffled
    yield set("a set of strings".split()), hash("a")
    yield tempfile.mkdtemp(), tempfile.mkstemp(suffix=".txt")[1], tempfile.mktemp()
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
        yield file.name, folder


def piece(name):
    return [
        name,
        time.time(),
        random.random(),
        uuid.uuid4().hex,
        tempfile.mktemp(),
        random.gauss(0, 1),
    ]


def in_threads():
    found = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: piece(n)})) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found.items())


async def in_tasks():
    async def task(number):
        await asyncio.sleep(0.001 * (7 - number))
        return piece(number)

    tasks = await asyncio.gather(*(task(n) for n in range(6)))
    jobs = await asyncio.gather(*(asyncio.to_thread(piece, n) for n in range(6)))
    return tasks + jobs


def in_fork():
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # A thread that was joined may be there for a moment more: whether 3.12 warns of it is a race.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.write(writer, repr(piece("child")).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 10_000), piece("parent")


def main():
    for row in (*clocks(), *chances()):
        print(row)
    logging.info("a log line with its time")
    print(in_threads())
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        print(list(pool.map(piece, range(9))))
    print(asyncio.run(in_tasks()))
    print(in_fork())
    print(piece("last"))


main()

# Threads of ours beside the program must not make Python warn of a fork.
print(subprocess.run(["echo", "x"], capture_output=True, check=True).stdout)
if not (pid := os.fork()):
    os._exit(0)
print(os.waitpid(pid, 0)[1])
