"""A script that starts a server in the background, runs its clients and kills the server does the same in a replay."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm_start

from playhead.launch.follow import tracer

PLAYHEAD = [sys.executable, "-m", "playhead"]

# It loads for longer than its client, or not at all: in a replay neither may be too early.
SERVER = """
import signal, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

until = time.process_time() + float(sys.argv[2])
while time.process_time() < until:
    pass

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

def stop(*_):
    print("stopped", file=sys.stderr, flush=True)
    sys.exit(7)

if sys.argv[3] == "handler":
    signal.signal(signal.SIGTERM, stop)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

CLIENT = """
import sys, time, urllib.request

until = time.process_time() + float(sys.argv[2])
while time.process_time() < until:
    pass
for path in ("ready", "one", "two"):
    while True:
        try:
            print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{path}").read())
            break
        except OSError:
            time.sleep(0.05)
"""

SCRIPT = """#!/bin/bash
python="$1" port="$2" server="$3" client="$4" action="$5"
"$python" server.py "$port" "$server" "$action" 2>server.log &
SERVER=$!
if [ "$client" = curl ]; then
    until curl -sf "http://127.0.0.1:$port/ready"; do sleep 0.05; done
    curl -s "http://127.0.0.1:$port/one"
else
    "$python" client.py "$port" "$client"
fi
kill $SERVER
wait $SERVER
echo "ended $?"
"""


@pytest.fixture
def play(tmp_path):
    """`play("replay", "last")` in a folder with the three programs."""
    if why := tracer.why_not(os.environ):
        pytest.skip(f"needs a tracer, and {why}")
    for name, text in (("server.py", SERVER), ("client.py", CLIENT), ("agent.sh", SCRIPT)):
        (tmp_path / name).write_text(text)
    (tmp_path / "agent.sh").chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}
    env["PLAYHEAD_HOME"] = str(tmp_path / "store")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return warm_start.run(
            [*PLAYHEAD, *words], cwd=tmp_path, env=env, capture_output=True, text=True,
            check=False, timeout=100,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("0.3", "curl", "default"), 143),
        (("0.3", "0", "default"), 143),
        (("0", "0.3", "handler"), 7),
    ],
    ids=["curl", "a client that is faster", "a client that is slower"],
)
def test_the_script_kills_its_server_after_the_same_answers(play, tmp_path, words, status):
    if "curl" in words and shutil.which("curl") is None:
        pytest.skip("needs curl")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    recorded = play("record", "--", "./agent.sh", sys.executable, port, *words)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.endswith(f"ended {status}\n")
    log = Path(tmp_path, "server.log").read_text()
    assert log.count("GET") >= 2
    replayed = play("replay", "last")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert "identical" in replayed.stderr
