"""What stays inside a program is done again in a replay: its own servers, daemon threads and processes."""

import sys

import pytest

from playhead.testing import HttpSite

OWN_SERVER = """
import http.client, http.server, json, sys, threading, urllib.request

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=body)) as got:
            answer = json.dumps({"length": json.load(got)["length"]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for word in (b"one", b"three"):
    client = http.client.HTTPConnection(*server.server_address)
    client.request("POST", "/tool", body=word)
    print(client.getresponse().read().decode())
    client.close()
server.shutdown()
"""
OWN_MODEL = """
import http.server, json, threading, urllib.request, httpx

class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = {"role": "assistant", "content": asked["messages"][0]["content"].upper()}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        answer = json.dumps({"model": "gpt-5", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
for word in ("one", "two"):
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": word}]}
    print(httpx.post(url, json=body).json()["choices"][0]["message"])
    sent = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    print(json.load(urllib.request.urlopen(sent))["choices"][0]["message"])
server.shutdown()
"""
DAEMON_THREAD = """
import sys, threading, time, urllib.request

def fetch():
    for number in range(3):
        urllib.request.urlopen(f"{sys.argv[1]}?{number}", data=b"price").read()
        fetched.release()
        time.sleep(0.05)

fetched = threading.Semaphore(0)
threading.Thread(target=fetch, daemon=True).start()
urllib.request.urlopen(sys.argv[1], data=b"question").read()
while not fetched._value >= 3:  # computes until the thread has fetched everything, without a wait of its own
    sum(range(10_000))
print("end")
"""
EVENT = """
import multiprocessing, time

def work(stop):
    looks = 0
    while not stop.is_set():
        looks += 1
        time.sleep(0.02)
    print("stopped after a look:", looks > 0, flush=True)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    worker = context.Process(target=work, args=(stop,))
    worker.start()
    time.sleep(0.3)
    stop.set()
    worker.join()
    print("exit code", worker.exitcode, flush=True)
"""
PRINTERS = """
import multiprocessing, sys, time

def work(number):
    for turn in range(3):
        time.sleep(0.1 * ((number + turn) % 3))
        print("worker", number, "turn", turn, flush=True)
        print("log of worker", number, file=sys.stderr)
    print("end of", number)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    print("the parent waits", flush=True)
    for worker in workers:
        worker.join()
    print("end")
"""
# The class of granian 2.8 that starts a server. The real one accepts connections in Rust.
GRANIAN = """
import pathlib, sys, tempfile

folder = pathlib.Path(tempfile.mkdtemp()) / "granian" / "server"
folder.mkdir(parents=True)
(folder.parent / "__init__.py").touch()
(folder / "__init__.py").touch()
(folder / "common.py").write_text("class AbstractServer:\\n    def startup(self): print('serves')\\n")
sys.path.insert(0, str(folder.parent.parent))
from granian.server.common import AbstractServer
AbstractServer().startup()
"""
# The class of ipykernel 7 that runs a kernel. The real one reads cells from sockets of ZeroMQ.
IPYKERNEL = """
import pathlib, sys, tempfile

folder = pathlib.Path(tempfile.mkdtemp()) / "ipykernel"
folder.mkdir(parents=True)
(folder / "__init__.py").touch()
(folder / "kernelapp.py").write_text("class IPKernelApp:\\n    def start(self): print('runs')\\n")
sys.path.insert(0, str(folder.parent))
from ipykernel.kernelapp import IPKernelApp
IPKernelApp().start()
"""
# As `jupyter nbconvert` executes `jupyter-nbconvert`.
BECOMES_A_SCRIPT = """
import os, pathlib, sys

script = pathlib.Path("tool").absolute()
script.write_text(f"#!{sys.executable}\\nimport uuid\\nprint('the tool', uuid.uuid4())\\n")
script.chmod(0o755)
os.execv(script, [str(script)])
"""


def test_a_request_to_the_programs_own_server_is_made_again_in_a_replay(play):
    with HttpSite() as site:
        taken = play.record(OWN_SERVER, f"{site.url}/upload")
    assert taken.stdout.count("length") == 2
    play.assert_identical(taken)
    play.edit('b"three"', 'b"other"')
    changed = play.replay()
    assert changed.returncode == 3
    assert "no taped call matches" in changed.stderr


def test_the_calls_of_a_model_that_the_program_itself_serves_are_recorded(play):
    taken = play.record(OWN_MODEL)
    assert "4 LLM" in taken.stderr
    play.assert_identical(taken)


def test_a_daemon_thread_comes_as_far_as_it_had_come_when_the_program_ended(play):
    with HttpSite() as site:
        taken = play.record(DAEMON_THREAD, f"{site.url}/upload")
    play.edit("while not fetched._value >= 3:", "while False:")
    play.assert_identical(taken)


def test_a_process_sees_an_event_set_after_as_many_looks_as_in_the_recorded_run(play):
    taken = play.record(EVENT)
    play.assert_identical(taken)


def test_processes_of_a_program_print_in_the_order_of_the_recording(play):
    taken = play.record(PRINTERS)
    assert taken.stdout.count("worker") == 9
    play.assert_identical(taken)
    play.edit('print("end of", number)', 'print("end of", number) if number else None')
    changed = play.replay()
    assert changed.returncode == 3
    assert "end of 0" in changed.stderr


@pytest.mark.parametrize(
    ("program", "server", "advice"),
    [(GRANIAN, "granian", "uvicorn"), (IPYKERNEL, "the notebook kernel", "--to script")],
)
def test_a_recording_says_which_requests_are_not_on_the_tape(play, program, server, advice):
    (play.folder / "agent.py").write_text(program)
    taken = play.run("record", "--", sys.executable, "agent.py")
    said = f"partial: requests to {server} were not recorded, so it cannot be replayed"
    assert said in taken.stderr
    refused = play.replay()
    assert refused.returncode == 4
    assert advice in refused.stderr


def test_a_program_that_becomes_a_python_script_is_replayed_to_its_end(play):
    taken = play.record(BECOMES_A_SCRIPT)
    assert taken.stdout.startswith("the tool ")
    play.assert_identical(taken)
