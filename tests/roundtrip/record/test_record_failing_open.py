"""Whatever happens to the tape, the command is unharmed, and one line says what was lost."""

import os
import resource
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from playhead.launch.follow import tracer

pytestmark = pytest.mark.faults

AGENT = "import subprocess\nfor _ in range(40): subprocess.run(['true'])\nprint('done')\n"


def warnings(take):
    return [line for line in take.ended.stderr.splitlines() if line.startswith("playhead: ")]


def test_a_store_that_cannot_be_made_leaves_the_command_alone(record):
    record.home.write_text("a file where the folder should be")
    take = record(sys.executable, "-c", AGENT)
    assert (take.ended.returncode, take.ended.stdout) == (0, "done\n")
    (warning,) = warnings(take)
    assert "nothing is recorded" in warning
    assert "The program is not affected." in warning


def test_a_store_that_cannot_be_written_to_leaves_the_command_alone(record):
    record.home.mkdir()
    (record.home / "runs").symlink_to("/proc/self/no-such-folder")
    take = record("sh", "-c", "echo done; exit 5")
    assert (take.ended.returncode, take.ended.stdout) == (5, "done\n")
    assert len(warnings(take)) == 1


def test_an_unrecorded_command_is_the_very_process_that_was_started(record):
    record.home.write_text("")
    running = record.start("sh", "-c", "echo $$", text=True, stderr=subprocess.DEVNULL)
    with running:
        assert int(running.stdout.readline()) == running.pid


def test_a_disk_that_is_full_costs_events_and_nothing_else(record):
    limit = 6000

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    take = record(sys.executable, "-c", AGENT, preexec_fn=fill)
    assert (take.ended.returncode, take.ended.stdout) == (0, "done\n")
    assert all("could not be recorded" in line for line in warnings(take))
    # One of each process that lost something, and no more.
    assert 1 <= len(warnings(take)) <= 3
    assert all(path.stat().st_size <= limit for path in record.take().run.iterdir())


def test_a_run_whose_folder_is_deleted_goes_on(record, tmp_path):
    program = """
import subprocess, sys
print('ready', flush=True)
sys.stdin.readline()
for _ in range(200): subprocess.run(['true'])
print('done')
"""
    running = record.start(sys.executable, "-c", program, stdin=-1, stderr=-1, text=True)
    with running:
        assert running.stdout.readline() == "ready\n"
        # At one stroke: somebody beside the command may be about to make a file in there.
        gone = record.take().run.rename(tmp_path / "gone")
        shutil.rmtree(gone)
        running.stdin.write("go\n")
        running.stdin.close()
        assert running.stdout.read() == "done\n"
        told = running.stderr.read()
        assert running.wait() == 0
    assert "Traceback" not in told


def test_rules_that_cannot_be_read_leave_the_process_unrecorded_and_unharmed(record):
    program = """
import glob, os, subprocess, sys
(rules,) = glob.glob(os.environ['PLAYHEAD_HOME'] + '/runs/*/guests.json')
with open(rules, 'w') as file: file.write('{')
subprocess.run([sys.executable, '-c', 'print("child")'])
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.stdout == "child\n"
    (warning,) = warnings(take)
    assert "this process is not recorded" in warning


def test_an_installation_that_is_gone_leaves_the_program_alone(record):
    env = {"PYTHONPATH": "/no/such/playhead/launch/guest/site", "PLAYHEAD_RUN": "/no/such/run"}
    ended = record.bare(sys.executable, "-c", "print('on')", env=env)
    assert (ended.stdout, ended.stderr) == ("on\n", "")


# Kills the processes that the launcher started beside the command, and waits until they are gone.
KILL_ATTENDANTS = """
import os, select, signal, subprocess, sys
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) != os.getpid():
        try: stat = open(f'/proc/{name}/stat').read().rpartition(')')[2].split()
        except OSError: continue
        if int(stat[1]) == os.getppid():
            handle = os.pidfd_open(int(name))
            os.kill(int(name), signal.SIGKILL)
            select.select([handle], [], [])
"""
ATTENDANT_KILLER = f"""print('before', flush=True)
{KILL_ATTENDANTS}
print('after', flush=True)
for line in sys.stdin: print('heard', line, end='', flush=True)
subprocess.run(['echo', 'of a child'])
sys.stderr.write('told\\n')
sys.exit(4)
"""


def test_a_killed_sidecar_takes_neither_the_output_nor_the_input_of_the_command(record):
    running = record.start(sys.executable, "-c", ATTENDANT_KILLER, stdin=-1, stderr=-1, text=True)
    with running:
        assert running.stdout.readline() == "before\n"
        assert running.stdout.readline() == "after\n"
        output, errors = running.communicate("one\ntwo\n")
    assert output == "heard one\nheard two\nof a child\n"
    assert "told\n" in errors
    assert running.returncode == 4
    take = record.take()
    assert take.status == "failed"
    assert take.damages == []
    assert take.printed().endswith("after\nheard one\nheard two\nof a child\n")
    (hole,) = [one.data for one in take.of("hole") if one.data["what"] == "the sidecar"]
    assert "killed" in hole["why"]


class PleasedHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        """Quietly."""


def test_a_killed_sidecar_leaves_a_native_agent_its_model(record):
    program = f"""{KILL_ATTENDANTS}
from urllib.request import urlopen
print(urlopen(os.environ['ANTHROPIC_BASE_URL'] + '/v1/models').status)
"""
    with ThreadingHTTPServer(("127.0.0.1", 0), PleasedHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        take = record("sh", "-c", 'exec "$0" -ISc "$1"', sys.executable, program, env=env)
        server.shutdown()
    assert (take.ended.stdout, take.ended.returncode) == ("200\n", 0)
    assert len(take.calls("http")) == 1


# Kills the process that watches the connections, waits until it is gone, then connects.
WATCHER_KILLER = """
import os, select, signal, socket

def seen(name):
    try:
        names = os.listdir(f'/proc/{name}/fd')
        links = {os.readlink(f'/proc/{name}/fd/{one}') for one in names}
        return {*links, int(open(f'/proc/{name}/stat').read().rpartition(')')[2].split()[2])}
    except OSError:
        return set()

def parent(pid):
    try:
        return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
    except OSError:
        return None

door = socket.create_server(('127.0.0.1', 0))
socket.create_connection(door.getsockname())  # from here on, the watcher answers
ours = {os.getpgrp(), 'anon_inode:seccomp notify'}
found = [int(name) for name in os.listdir('/proc') if name.isdigit() and ours <= seen(name)]
# The processes that started it may not have ended yet.
parents = {parent(pid) for pid in found}
watchers = [pid for pid in found if parent(pid) in found and pid not in parents] or found
for pid in watchers:
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([handle], [], [])
for _ in range(3): socket.create_connection(door.getsockname())
print(len(watchers), 'killed')
"""


def test_a_killed_watcher_of_connections_leaves_the_command_its_network(record):
    take = record(sys.executable, "-c", WATCHER_KILLER)
    if take.ended.stdout == "0 killed\n":
        pytest.skip("connections are not watched on this machine")
    # More than one: a process that started the watcher was still ending.
    assert (take.ended.returncode, take.ended.stdout[1:]) == (0, " killed\n")
    assert take.manifest.extra["connections"] == "not watched"
    (hole,) = [one.data for one in take.of("hole") if one.data["what"] == "connections"]
    assert "watcher was killed" in hole["why"]


def test_a_killed_tracer_leaves_the_command_alone_and_a_hole_on_the_tape(record):
    if why := tracer.why_not(os.environ):
        pytest.skip(why)
    kill = "while read -r key value; do test $key = TracerPid: && kill -9 $value; done"
    take = record("sh", "-c", f"{kill} </proc/$$/status; /bin/echo on; exit 7")
    assert (take.ended.returncode, take.ended.stdout) == (7, "on\n")
    assert "their tracer was killed" in {one.data["why"] for one in take.of("hole")}


def test_a_tape_that_cannot_be_read_back_does_not_change_the_exit_code(record):
    program = """
import glob, os
(run,) = glob.glob(os.environ['PLAYHEAD_HOME'] + '/runs/*')
with open(run + '/tape-1.jsonl', 'wb') as file: file.write(b'\\xff' * 100 + b'\\n{"seq":0}\\n')
os._exit(6)
"""
    take = record(sys.executable, "-c", program)
    assert take.ended.returncode == 6
    assert "Traceback" not in take.ended.stderr
