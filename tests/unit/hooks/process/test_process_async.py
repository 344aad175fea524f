"""asyncio, anyio, trio and uvloop: each starts, feeds and reaps its children in its own way."""

import asyncio
import os
import signal
import sys
from functools import partial
from subprocess import DEVNULL, PIPE, STDOUT

import anyio
import pytest
import trio
import uvloop

TOUCH = "touch trace; "


def on_asyncio(scene):
    return lambda work: asyncio.run(scene(work))


def on_uvloop(scene):
    def play(work):
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(scene(work))
        finally:
            loop.close()

    return play


LOOPS = pytest.mark.parametrize("on", [on_asyncio, on_uvloop])


@LOOPS
def test_exec_with_both_streams(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", TOUCH + "echo out; echo err >&2; exit 3", cwd=work, stdout=PIPE, stderr=PIPE
        )
        return await process.communicate(), process.returncode

    recorded = stage.all(on(scene))
    assert (recorded.stream("stdout"), recorded.stream("stderr")) == (b"out\n", b"err\n")
    assert recorded.outcome["exit_code"] == 3
    assert stage.replayed.stream("stdout") == b"out\n"


@LOOPS
def test_shell_with_input(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_shell(
            TOUCH + "tr a-z A-Z", cwd=work, stdin=PIPE, stdout=PIPE, stderr=STDOUT
        )
        return await process.communicate(b"shout\n"), process.returncode

    recorded = stage.all(on(scene))
    assert recorded.call["request"]["shell"] == TOUCH + "tr a-z A-Z"
    assert recorded.marks() == [("stdin", b"shout\n"), ("closed", b"stdin"), ("stdout", b"SHOUT\n")]


@LOOPS
def test_a_conversation_line_by_line(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
        heard = []
        for line in (b"one\n", b"two\n"):
            process.stdin.write(line)
            await process.stdin.drain()
            heard.append(await process.stdout.readline())
        heard.append(process.returncode)
        process.stdin.close()
        await process.stdin.wait_closed()
        return heard, await process.stdout.read(), await process.wait()

    stage.all(on(scene))


def test_other_input_than_on_the_tape_is_reported_with_both_texts(stage):
    def scene(line):
        async def play(work):
            process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
            process.stdin.write(line)
            await process.stdin.drain()
            heard = await process.stdout.readline()
            process.stdin.close()
            return heard, await process.wait()

        return on_asyncio(play)

    assert stage.record(scene(b"one fox\n")) == (b"one fox\n", 0)
    heard, code = stage.replay(scene(b"two foxes\n"))
    # The program sees only that the process was killed, so the report has to name the reason.
    assert (heard, code) == (b"", -signal.SIGKILL)
    (reported,) = stage.reported
    assert "recording has 'one fox\\n' and this replay 'two foxes\\n'" in reported


@LOOPS
def test_large_input_and_output_at_once(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", TOUCH + "cat", cwd=work, stdin=PIPE, stdout=PIPE
        )
        out, _ = await process.communicate(b"0123456789" * 60_000)
        return out, process.returncode

    recorded = stage.all(on(scene))
    assert recorded.stream("stdin") == recorded.stream("stdout") == b"0123456789" * 60_000


@LOOPS
def test_a_timeout_and_a_kill(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", TOUCH + "echo up; exec sleep 60", cwd=work, stdout=PIPE
        )
        first = await process.stdout.readline()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 0.05)
        process.kill()
        return first, await process.stdout.read(), await process.wait()

    recorded = stage.all(on(scene))
    assert recorded.outcome["signal"] == "SIGKILL"
    assert ("signal", b"SIGKILL") in recorded.marks()


@LOOPS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_is_answered(stage, on, number):
    program = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(print('bye') or 7))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )

    async def scene(work):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdin=PIPE, stdout=PIPE
        )
        first = await process.stdout.readline()
        process.send_signal(number)
        return first, await process.communicate(), process.returncode

    stage.all(on(scene))


@LOOPS
def test_what_cannot_be_started(stage, on):
    async def scene(work):
        with pytest.raises(FileNotFoundError) as raised:
            await asyncio.create_subprocess_exec("no-such-program")
        return str(raised.value)

    stage.all(on(scene))
    assert stage.recorded.outcome["how"] == "raised"


@LOOPS
def test_nothing_is_captured_where_nothing_was_asked_for(stage, on):
    async def scene(work):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", TOUCH + "echo gone", cwd=work, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        return await process.wait(), process.stdin, process.stdout

    assert stage.all(on(scene)).stream("stdout") == b""


@LOOPS
def test_many_at_once_do_not_get_mixed_up(stage, on):
    async def one(number):
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", f"read x; echo {number}-$x", stdin=PIPE, stdout=PIPE
        )
        return await process.communicate(b"%d\n" % number), process.returncode

    async def scene(work):
        return await asyncio.gather(*map(one, range(10)))

    stage.all(on(scene))


@LOOPS
def test_a_protocol_of_the_programs_own(stage, on):
    class Protocol(asyncio.SubprocessProtocol):
        def __init__(self):
            self.told = []
            self.done = asyncio.get_running_loop().create_future()

        def connection_made(self, transport):
            self.told.append(
                ("made", transport.get_pid() > 0, transport.get_pipe_transport(1) is not None)
            )

        def pipe_data_received(self, fd, data):
            self.told.append((fd, data))

        def process_exited(self):
            self.told.append("exited")

        def connection_lost(self, error):
            self.done.set_result(error)

    async def scene(work):
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            Protocol, "sh", "-c", TOUCH + "echo x", cwd=work, stdin=None, stderr=None
        )
        await protocol.done
        code = transport.get_returncode()
        transport.close()
        return isinstance(protocol, Protocol), code, sorted(map(str, protocol.told))

    stage.all(on(scene))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio_runs_and_opens(stage, backend):
    async def scene(work):
        done = await anyio.run_process(
            ["sh", "-c", TOUCH + "cat; echo err >&2"], cwd=work, input=b"in"
        )
        async with await anyio.open_process(["cat"]) as process:
            await process.stdin.send(b"ping")
            pong = await process.stdout.receive()
            await process.stdin.aclose()
            code = await process.wait()
        return done.stdout, done.stderr, done.returncode, pong, code

    recorded = stage.all(lambda work: anyio.run(scene, work, backend=backend))
    assert recorded.stream("stdout") == b"inping"
    assert recorded.stream("stdin") == b"inping"
    assert recorded.stream("stderr") == b"err\n"


def test_trio_runs_and_opens(stage):
    async def scene(work):
        done = await trio.run_process(
            ["sh", "-c", TOUCH + "cat"], cwd=work, stdin=b"x" * 200_000, capture_stdout=True
        )
        async with trio.open_nursery() as nursery:
            run = partial(trio.run_process, stdout=PIPE, check=False)
            process = await nursery.start(run, ["sh", "-c", "echo up; exec sleep 60"])
            first = await process.stdout.receive_some()
            process.terminate()
            await process.wait()
        return done.stdout, first, process.returncode

    recorded = stage.all(lambda work: trio.run(scene, work))
    assert [one["exit_code" if "exit_code" in one else "signal"] for one in recorded.outcomes] == [
        0,
        "SIGTERM",
    ]


def test_a_recorded_event_loop_leaves_no_descriptor_behind(stage):
    async def scene(work):
        process = await asyncio.create_subprocess_exec("true", stdin=PIPE, stdout=PIPE, stderr=PIPE)
        await process.communicate()
        return len(os.listdir("/proc/self/fd"))

    assert stage.record(on_asyncio(scene)) == stage.bare(on_asyncio(scene)) + 1  # the tape
