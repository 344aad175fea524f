"""Ids that sort by time, moments as people read them, and processes told apart."""

import os
import re
import subprocess
import sys

from playhead import clock

MOMENT = 1_794_726_665_123_456_789  # 2026-11-15T07:11:05.123456789Z


def test_a_run_id_is_a_moment_and_four_letters_that_can_be_read_aloud():
    made = clock.new_run_id(MOMENT)
    assert re.fullmatch(r"20261115-071105-[0-9a-hjkmnp-tv-z]{4}", made)
    assert len({clock.new_run_id(MOMENT) for _ in range(50)}) > 40


def test_run_ids_sort_by_time():
    moments = [MOMENT + n * 10**9 * 86_400 * 17 for n in range(50)]
    made = [clock.new_run_id(moment) for moment in moments]
    assert made == sorted(made)


def test_moments_are_shown_in_utc():
    assert clock.iso(MOMENT) == "2026-11-15T07:11:05.123456Z"
    assert clock.iso(0) == "1970-01-01T00:00:00.000000Z"
    assert clock.stamp(MOMENT) == "20261115T071105"


def test_a_process_has_a_birth_until_it_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        birth = clock.process_birth(child.pid)
        assert birth == clock.process_birth(child.pid)
        assert birth is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert clock.process_birth(child.pid) is None  # dead, only not yet reaped
    assert clock.process_birth(child.pid) is None


def test_names_with_brackets_and_blanks_do_not_confuse_it(tmp_path):
    odd = tmp_path / "a) R (b"
    odd.symlink_to("/bin/cat")
    with subprocess.Popen([str(odd)], stdin=subprocess.PIPE) as child:
        assert (clock.process_birth(child.pid) or "").isdigit()
        child.stdin.close()


def test_the_originals_are_kept_when_the_program_fakes_its_own(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 0)
    monkeypatch.setattr("os.urandom", lambda n: b"\0" * n)
    assert clock.wall_ns() > MOMENT - 10**18
    assert len({clock.urandom(8) for _ in range(4)}) == 4


DEADLOCK = """
import gc, sys, threading
from playhead import clock

class Loop:
    def __init__(self):
        self.me = self

    def __del__(self):
        for _ in range(2000):
            pass

def look():
    for _ in range(1000):
        Loop()
        clock.frames()

sys.setswitchinterval(1e-6)
gc.set_threshold(1)
threads = [threading.Thread(target=look) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", gc.isenabled())
"""


def test_threads_read_the_frames_of_all_threads_while_finalizers_run():
    ran = subprocess.run(
        [sys.executable, "-c", DEADLOCK], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "done True\n"
