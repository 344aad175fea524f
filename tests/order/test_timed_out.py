"""A run that `timeout` ended replays up to its end."""

import os
import signal
import sys
from pathlib import Path

from tests.order.shapes import run

from playhead.testing import Exchange, HttpSite

# The call is in flight in a thread, where no signal handler can be set, when the program is killed.
WAITS_IN_A_THREAD = """
import sys, threading, urllib.request
thread = threading.Thread(target=urllib.request.urlopen, args=(sys.argv[1] + "/held",))
thread.start()
thread.join()
"""


def send_to_timeout(folder: Path) -> None:
    """Send `timeout` in this folder the signal of its timer."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, words = (process / "comm").read_text(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if name == "timeout\n" and os.fsencode(folder) in words:
            os.kill(int(process.name), signal.SIGALRM)


async def end_stalled(exchange: Exchange, folder: Path) -> None:
    send_to_timeout(folder)
    await exchange.end("stall")


def test_a_run_that_timeout_ended_in_a_call_of_a_thread_replays_to_the_same_end(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WAITS_IN_A_THREAD)
    with HttpSite({"/held": lambda exchange: end_stalled(exchange, tmp_path)}) as site:
        words = ["timeout", "600", sys.executable, str(program), site.url]
        then = run(tmp_path, "record", "--no-seal", "--", *words)
    assert then.returncode == 124, then.stderr.decode()
    now = run(tmp_path, "replay", "last")
    assert now.returncode == 0, now.stderr.decode()
