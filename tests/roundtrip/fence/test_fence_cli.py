"""`playhead replay` of programs that no hook sees: nothing is sent, nothing is written, and it says so."""

import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests import warm_start

from playhead.errors import NoFence
from playhead.events import HOLE
from playhead.replay.fence import barrier
from playhead.replay.fence.inside import FenceNeeds
from playhead.tape.reader import Tape

PLAYHEAD = [sys.executable, "-m", "playhead"]
AGENT = """#!/bin/bash
echo deploy >> deployed.log
/usr/bin/curl -sf -X POST "$SERVER/from-curl" || echo no curl
exec 3<>/dev/tcp/127.0.0.1/$PORT || exit 1
printf 'GET /from-bash HTTP/1.0\\r\\n\\r\\n' >&3; tail -1 <&3
"""
DENIED = """
import os, sys
from playhead.replay.fence import kernel, seccomp
names = sys.argv[1].split(",")
kernel.no_new_privileges()
seccomp.install(seccomp.compiled([seccomp.SyscallRule(one, seccomp.refuse(int(sys.argv[2]))) for one in names],
                                 foreign=seccomp.ALLOW))
os.execvp(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture(autouse=True)
def has_fence():
    try:
        barrier.build(FenceNeeds(own=()), ["namespaces"]).abandon()
    except NoFence as error:
        pytest.skip(f"needs namespaces, and {error}")


@pytest.fixture
def server():
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "3")
            self.end_headers()
            self.wfile.write(b"ok\n")

        do_GET = do_POST  # noqa: N815  the name is the library's

        def log_message(self, *args: object) -> None:
            """Quietly."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made.server_address[1], seen
        made.shutdown()


@pytest.fixture
def play(tmp_path: Path, server):
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "agent.sh").chmod(0o700)
    port = server[0]
    env = {**os.environ, "SERVER": f"http://127.0.0.1:{port}", "PORT": str(port)}

    def run(
        verb: str, *words: str, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        argv = [*before, *PLAYHEAD, verb, "--store", str(tmp_path / "store"), *words]
        return warm_start.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=100
        )

    return run


def test_a_script_that_sends_and_writes_does_neither_in_its_replays(play, server, tmp_path):
    _, seen = server
    play("record", "--", "true")
    for _ in range(3):
        now = play("replay", "last", "--", "./agent.sh")
        assert now.returncode == 3, now.stderr
        assert "diverged" in now.stderr
    assert seen == []
    assert not (tmp_path / "deployed.log").exists()


def test_a_script_that_only_writes_is_identical_and_its_file_is_written_once(play, tmp_path):
    play("record", "--", "sh", "-c", "echo deploy >> deployed.log; wc -l < deployed.log")
    (tmp_path / "deployed.log").unlink()
    now = play("replay", "last", "--report", "report.json")
    assert now.returncode == 0, now.stderr
    assert now.stdout.strip() == "1"
    assert not (tmp_path / "deployed.log").exists()
    fence = json.loads((tmp_path / "report.json").read_text())["fence"]
    assert fence["kind"] == "namespaces"
    assert fence["written"] == [str(tmp_path / "deployed.log")]


def test_unfenced_is_never_identical(play, tmp_path):
    play("record", "--", "true")
    now = play("replay", "last", "--unfenced", "--report", "report.json")
    assert now.returncode == 6
    assert "unproven" in now.stderr
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "unproven"


def test_where_there_is_no_fence_nothing_is_started(play, tmp_path):
    play("record", "--no-shims", "--", "sh", "-c", "echo ran > ran.log")
    (tmp_path / "ran.log").unlink()
    # Where a process may have no filter of its own, Landlock alone is not enough.
    denied = (sys.executable, "-c", DENIED, "unshare,mount,seccomp", str(errno.EPERM))
    now = play("replay", "last", before=denied)
    assert now.returncode == 4, now.stderr
    assert "--unfenced" in now.stderr
    assert not (tmp_path / "ran.log").exists()


def test_without_namespaces_a_replay_is_fenced_by_landlock(play, server, tmp_path):
    _, seen = server
    try:
        barrier.build(FenceNeeds(own=()), ["landlock"]).abandon()
    except NoFence as error:
        pytest.skip(f"needs Landlock, and {error}")
    play("record", "--no-shims", "--", "true")
    denied = (sys.executable, "-c", DENIED, "unshare,mount", str(errno.EPERM))
    now = play("replay", "last", "--report", "report.json", before=denied)
    assert now.returncode == 0, now.stderr
    assert json.loads((tmp_path / "report.json").read_text())["fence"]["kind"] == "landlock"
    now = play("replay", "last", "--", "./agent.sh", before=denied)
    assert now.returncode == 3, now.stderr
    assert seen == []
    assert not (tmp_path / "deployed.log").exists()


def test_connections_that_nothing_records_make_a_run_partial(play, server, tmp_path):
    _, seen = server
    done = play("record", "--", "./agent.sh")
    if "connections not watched" in done.stderr:
        pytest.skip("needs root, or a process that cannot gain privileges anyway")
    assert "partial" in done.stderr.splitlines()[-1]
    # curl is a process call, which is served whole; bash itself is the agent.
    assert f"(bash to 127.0.0.1:{server[0]})" in done.stderr
    assert sorted(seen) == ["/from-bash", "/from-curl"]
    now = play("replay", "last")
    assert now.returncode == 4
    assert f"bash to 127.0.0.1:{server[0]}" in now.stderr
    assert len(seen) == 2
    assert (tmp_path / "deployed.log").read_text() == "deploy\n"


def test_what_the_fence_stopped_is_in_the_report_with_program_and_destination(
    play, server, tmp_path
):
    play("record", "--", "true")
    play("replay", "last", "--report", "report.json", "--", "./agent.sh")
    divergences = json.loads((tmp_path / "report.json").read_text())["divergences"]
    stopped = {one["program"]: one["destination"] for one in divergences if one["kind"] == "fence"}
    assert set(map(os.path.basename, stopped)) == {"bash"}
    refused = [one for one in divergences if one["kind"] == "missed"]
    assert "curl" in json.dumps(refused)
    assert set(stopped.values()) == {f"127.0.0.1:{server[0]}"}


HOOKED = """
import os, subprocess, urllib.request
print(urllib.request.urlopen(os.environ["SERVER"] + "/hooked").read())
print(subprocess.run(["/usr/bin/curl", "-s", os.environ["SERVER"] + "/called"], capture_output=True).stdout)
"""


def test_connections_of_hooks_and_of_recorded_processes_are_accounted_for(play, server, tmp_path):
    (tmp_path / "hooked.py").write_text(HOOKED)
    then = play("record", "--", sys.executable, "hooked.py")
    assert "partial" not in then.stderr
    now = play("replay", "last")
    assert now.returncode == 0, now.stderr
    assert now.stdout == then.stdout
    assert server[1] == ["/hooked", "/called"]


SERVES_ITSELF = """
import http.server, subprocess, sys, threading
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stderr = None
subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{server.server_port}"], check=True)
"""


def test_a_tree_that_serves_itself_is_whole(play, tmp_path):
    (tmp_path / "serves.py").write_text(SERVES_ITSELF)
    then = play("record", "--", "sh", "-c", f"{sys.executable} -I -S serves.py; true")
    assert "partial" not in then.stderr, then.stderr


def test_a_port_on_which_nothing_listened_is_the_same_in_a_replay(play, server):
    script = "(exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null || echo nothing there"
    then = play("record", "--", "bash", "-c", script)
    assert "partial" not in then.stderr
    now = play("replay", "last")
    assert now.returncode == 0, now.stderr


def examined(before=()):
    argv = [*before, *PLAYHEAD, "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=100)
    return {(one["area"], one["name"]): one for one in json.loads(done.stdout)}


def test_the_doctor_says_which_fence_replays_get():
    found = examined()
    assert found["fence", "namespaces"]["ok"]
    assert found["fence", "replays"]["detail"] == "fenced by namespaces"


def test_the_doctor_says_why_there_is_no_fence():
    found = examined((sys.executable, "-c", DENIED, "unshare,mount,seccomp", str(errno.EPERM)))
    assert not found["fence", "namespaces"]["ok"]
    assert "unshare" in found["fence", "namespaces"]["detail"]
    assert not found["fence", "replays"]["ok"]
    assert "--unfenced" in found["fence", "replays"]["detail"]


WITH_A_TOOL = """
import ctypes, os, struct
import playhead

@playhead.tool
def mail() -> int:
    libc = ctypes.CDLL(None)
    port = int.from_bytes(struct.pack(">H", int(os.environ["PORT"])), "little")
    return libc.connect(libc.socket(2, 1, 0), struct.pack("=HHI8x", 2, port, 0x0100007F), 16)

print(mail())
"""


def test_a_connection_inside_a_tool_call_is_accounted_for(play, tmp_path):
    (tmp_path / "tool.py").write_text(WITH_A_TOOL)
    then = play("record", "--", sys.executable, "tool.py")
    assert then.stdout == "0\n", then.stderr
    assert "partial" not in then.stderr, then.stderr
    now = play("replay", "last")
    assert (now.returncode, now.stdout) == (0, "0\n"), now.stderr


# Into the void: a connected datagram would report that nothing listens.
DATAGRAM = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
    print(made.sendto(b"x", ("127.0.0.1", int(sys.argv[1]))))
"""


def test_datagrams_are_named_on_the_tape_and_other_ones_in_a_replay_are_a_divergence(
    play, tmp_path
):
    (tmp_path / "sends.py").write_text(DATAGRAM)
    sends = [sys.executable, "-S", "sends.py"]
    then = play("record", "--", *sends, "8125")
    if "not watched" in then.stderr:
        pytest.skip("needs root, or a machine without sudo")
    assert "partial" not in then.stderr
    tape = Tape(min((tmp_path / "store" / "runs").iterdir()))
    holes = [str(one.data["what"]) for one in tape.events() if one.kind == HOLE]
    assert any(one.endswith("to 127.0.0.1:8125") for one in holes), holes
    now = play("replay", "last")
    assert now.returncode == 0, now.stderr
    now = play("replay", "last", "--", *sends, "8126")
    assert now.returncode == 3, now.stderr
    assert "127.0.0.1:8126" in now.stderr


UNSEEN = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
    made.sendmsg([b"x"], [], 0, ("127.0.0.1", 8125))
with socket.socket(socket.AF_UNIX) as made:
    made.connect(sys.argv[1])
inner, path = socket.socket(socket.AF_UNIX), sys.argv[2]
inner.bind(path)
inner.listen()
with socket.socket(socket.AF_UNIX) as made:
    made.connect(path)
"""


def test_datagrams_of_sendmsg_and_sockets_of_daemons_are_named_on_the_tape(play, tmp_path):
    (tmp_path / "sends.py").write_text(UNSEEN)
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(f"{folder}/docker.sock")
        daemon.listen()
        sends = [sys.executable, "-S", "sends.py", f"{folder}/docker.sock", f"{folder}/own.sock"]
        then = play("record", "--", *sends)
        if "not watched" in then.stderr:
            pytest.skip("needs root, or a machine without sudo")
        daemon.setblocking(False)
        daemon.accept()[0].close()
        tape = Tape(min((tmp_path / "store" / "runs").iterdir()))
        holes = [
            str(one.data["what"]).partition(" to ")[2] for one in tape.events() if one.kind == HOLE
        ]
        assert "addresses that were not seen" in holes
        assert f"{folder}/docker.sock" in holes
        assert f"{folder}/own.sock" not in holes, "a socket of the tree is no hole"
        now = play("replay", "last")
        assert now.returncode == 3, now.stderr
        assert "docker.sock" in now.stderr
        with pytest.raises(BlockingIOError):
            daemon.accept()
