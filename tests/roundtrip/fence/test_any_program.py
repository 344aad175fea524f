"""Programs in any language: what a script starts is served, a connection that nothing records makes the run
partial, and no replay sends a request or changes a file; as root, as `nobody`, and without user namespaces.
"""

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.roundtrip.fence.any_programs import make_programs

from playhead.launch.follow import tracer

SOURCE = Path(__file__).parents[3] / "src"
NOBODY = 65534
# Python programs that are not closed are part of the agent: what passes their hooks is not recorded.
PAST_HOOKS = frozenset({"ctypes", "pycurl"})
# In `make test`; the others with the agents.
QUICK = frozenset({"c", "daemon", "bash", "perl", "curl", "ctypes", "python -S"})
DENIED = """
import os, sys
from playhead.replay.fence import kernel, seccomp
kernel.no_new_privileges()
rules = [seccomp.SyscallRule(one, seccomp.refuse(1)) for one in ("unshare", "mount")]
seccomp.install(seccomp.compiled(rules, foreign=seccomp.ALLOW))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class CountingServer(ThreadingHTTPServer):
    """Counts connections, with or without a request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.count = 0

    def process_request(self, *args) -> None:
        self.count += 1
        super().process_request(*args)


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    do_GET = do_POST  # noqa: N815  the name is the library's

    def log_message(self, *args: object) -> None:
        """Quietly."""


class Person:
    """Runs `playhead` as a user, in a folder that everybody may write to."""

    def __init__(self, folder: Path, server: CountingServer, user: str) -> None:
        self.folder, self.server = folder, server
        self.outside = folder / "outside"
        self.home = folder / "home"
        for one in (self.outside, self.home):
            one.mkdir()
        for one in (folder, self.outside, self.home):
            one.chmod(0o777)
        self.is_other = user == "nobody" and os.geteuid() == 0
        # The interpreter of the tests may lie in root's home.
        self.python = "/usr/bin/python3" if self.is_other else sys.executable
        port = server.server_address[1]
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent" if self.is_other else str(self.home),
            "PYTHONPATH": os.pathsep.join([str(SOURCE), sysconfig.get_paths()["purelib"]]),
            "SERVER": f"http://127.0.0.1:{port}",
            "PORT": str(port),
            "OUTSIDE": str(self.outside),
        }

    def play(self, verb: str, *words: str, denied: bool = False):
        before = [self.python, *(["-c", DENIED] if denied else [])]
        argv = [*before, "-m", "playhead", verb, "--store", str(self.folder / "store"), *words]
        more = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.is_other else {}
        return subprocess.run(
            argv, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
            timeout=100, stdin=subprocess.DEVNULL, **more,
        )  # fmt: skip

    def files(self) -> dict[str, tuple[int, int]]:
        found = {}
        for one in self.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if one.is_file() and "store" not in one.parts:
                    found[str(one)] = (one.stat().st_size, one.stat().st_mtime_ns)
        return found


def _can_be_nobody() -> bool:
    """Whether Debian's Python can load the libraries of the tests."""
    code = "import playhead.cli, click, msgspec"
    env = {"PYTHONPATH": os.pathsep.join([str(SOURCE), sysconfig.get_paths()["purelib"]])}
    with contextlib.suppress(OSError):
        argv = ["/usr/bin/python3", "-c", code]
        return (
            subprocess.run(argv, env=env, user=NOBODY, capture_output=True, check=False).returncode
            == 0
        )
    return False


USERS = ["myself", *(["nobody"] if os.geteuid() == 0 and _can_be_nobody() else [])]


@contextlib.contextmanager
def _open_folder() -> Iterator[Path]:
    """A folder for every user: those of pytest are closed, and another session closes them again."""
    with tempfile.TemporaryDirectory(prefix="playhead-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, list[str]]]:
    if why := tracer.why_not(os.environ):
        pytest.skip(f"needs a tracer, and {why}")
    with _open_folder() as folder:
        yield make_programs(folder)


@pytest.fixture
def server():
    with CountingServer() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture(params=USERS)
def person(request, server) -> Iterator[Person]:
    with _open_folder() as folder:
        yield Person(folder, server, request.param)


def _command(person: Person, words: list[str]) -> str:
    made = shlex.join(person.python if one == sys.executable else one for one in words)
    return made.replace("'$SERVER/", '"$SERVER"\'/')


def _script(person: Person, programs: dict[str, list[str]]) -> str:
    lines = ["#!/bin/bash", "echo deploy >> deployed.log"]
    for name, words in programs.items():
        if name in PAST_HOOKS or name == "daemon":
            continue
        command = _command(person, words)
        lines += [command, f"({command}) 2>&1 | cat", f"sh -c {shlex.quote(command)}"]
        lines += [f"{command} & wait", f"x=$({command} 2>&1); echo \"$x $?\""]  # fmt: skip
    path = person.folder / "agent.sh"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return "./agent.sh"


@pytest.mark.timeout(300)
def test_programs_of_a_script_are_served_and_send_nothing(person, programs, server):
    quick = {name: words for name, words in programs.items() if name in QUICK}
    script = _script(person, quick)
    then = person.play("record", "--", script)
    assert then.returncode == 0, then.stderr
    assert "partial" not in then.stderr
    sent, files = server.count, person.files()
    assert sent == then.stdout.count("ok") == 5 * len(quick.keys() - PAST_HOOKS - {"daemon"})
    for _ in range(3):
        now = person.play("replay", "last")
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
        assert "identical" in now.stderr
    assert (server.count, person.files()) == (sent, files)


def _is_partial_and_refused(person: Person, server: CountingServer, words: list[str]) -> None:
    command = [person.python if one == sys.executable else one for one in words]
    command = [one.replace("$SERVER", person.env["SERVER"]) for one in command]
    then = person.play("record", "--", *command)
    assert then.returncode == 0, then.stderr
    if "not watched" in then.stderr:
        pytest.skip("needs root, or a machine without sudo")
    last = " ".join(then.stderr.splitlines()).rpartition("●")[2]
    assert "partial" in last, then.stderr
    assert f"to 127.0.0.1:{person.env['PORT']}" in last
    assert "process call" in last  # what to do
    sent, files = server.count, person.files()
    now = person.play("replay", "last")
    assert now.returncode == 4, now.stderr
    assert f"to 127.0.0.1:{person.env['PORT']}" in " ".join(now.stderr.split())
    assert (server.count, person.files()) == (sent, files)


@pytest.mark.parametrize("name", ["c", "daemon", "ctypes", "python -S"])
def test_a_connection_that_nothing_records_makes_the_run_partial(person, programs, server, name):
    if name not in programs:
        pytest.skip("needs a C compiler that links statically")
    _is_partial_and_refused(person, server, programs[name])


@pytest.mark.agents
@pytest.mark.timeout(900)
def test_every_language_is_served_or_refused(person, programs, server):
    script = _script(person, programs)
    then = person.play("record", "--", script)
    assert then.returncode == 0, then.stderr
    sent, files = server.count, person.files()
    for _ in range(3):
        now = person.play("replay", "last")
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert (server.count, person.files()) == (sent, files)
    for name in programs.keys() - {
        "python",
        "python -I",
        "daemon",
        "nc",
    }:  # recorded; served; later
        _is_partial_and_refused(person, server, programs[name])


REACHES_A_DAEMON = """
import socket, sys
made = socket.socket(socket.AF_UNIX)
made.settimeout(5)
made.connect(sys.argv[1])
made.sendall(b"deploy")
"""


def test_without_namespaces_programs_are_served_and_daemons_are_out_of_reach(
    person, programs, server
):
    command = _command(person, programs["c"])
    (person.folder / "reach.py").write_text(REACHES_A_DAEMON)
    (person.folder / "agent.sh").write_text(f"{command}\nx=$({command}); echo $x\n")
    then = person.play("record", "--", "bash", "agent.sh", denied=True)
    assert then.stdout == "c ok\nc ok\n", then.stderr
    sent, files = server.count, person.files()
    for _ in range(3):
        now = person.play("replay", "last", denied=True)
        assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert (server.count, person.files()) == (sent, files)
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(person.folder / "daemon.sock"))
        (person.folder / "daemon.sock").chmod(0o777)
        daemon.listen()
        daemon.setblocking(False)
        changed = f"exec {person.python} -S reach.py daemon.sock"
        now = person.play("replay", "last", "--", "sh", "-c", changed, denied=True)
        assert now.returncode == 3, now.stderr
        assert "PermissionError" in now.stderr
        with pytest.raises(BlockingIOError):
            daemon.accept()


SAME_TWICE = "python3 plain.py; python3 plain.py > second.txt; cat second.txt"
ANSWERS_DIFFER = """
import os, urllib.request
print(urllib.request.urlopen(os.environ["SERVER"] + "/same").headers["date"], os.urandom(2).hex())
"""


def test_two_pythons_that_send_the_same_request_get_their_own_answers(person, server):
    (person.folder / "plain.py").write_text(ANSWERS_DIFFER)
    script = SAME_TWICE.replace("python3", person.python)
    then = person.play("record", "--", "bash", "-c", script)
    assert server.count == 2, then.stderr
    now = person.play("replay", "last")
    assert (now.returncode, now.stdout) == (0, then.stdout), now.stderr
    assert server.count == 2


def test_the_doctor_speaks_the_truth_in_a_bare_environment(person):
    person.env = {"PYTHONPATH": person.env["PYTHONPATH"]}
    argv = [person.python, "-m", "playhead", "doctor", "--json"]
    more = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if person.is_other else {}
    done = subprocess.run(
        argv, env=person.env, capture_output=True, text=True, check=True, timeout=100, **more
    )
    said = {(one["area"], one["name"]): one for one in json.loads(done.stdout)}
    person.env |= {"PORT": str(person.server.server_address[1]), "OUTSIDE": str(person.outside)}
    script = "exec 3<>/dev/tcp/127.0.0.1/$PORT; /bin/true; /bin/echo x"
    then = person.play("record", "--", "bash", "-c", f"{script}; :")
    is_watched = "not watched" not in then.stderr
    assert said["record", "connections"]["ok"] == is_watched == ("partial" in then.stderr), (
        then.stderr
    )
    followed = person.play("record", "--json", "--", "bash", "-c", "/bin/true; /bin/echo x; :")
    calls = json.loads(followed.stderr.splitlines()[-1])["calls"]
    assert said["record", "follow"]["ok"] == (calls == 2), followed.stderr
    kind = said["fence", "replays"]["detail"].rpartition(" ")[2]
    person.play("replay", "last", "--report", str(person.folder / "r.json"))
    assert json.loads((person.folder / "r.json").read_text())["fence"]["kind"] == kind
