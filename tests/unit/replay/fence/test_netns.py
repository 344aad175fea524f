"""A command without a network: the same process, user and files, and nothing but its own loopback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.replay.fence import netns

SCRIPT = Path(netns.__file__)


@pytest.fixture(scope="module")
def caged():
    cage = netns.cage()
    if not cage.prefix:
        pytest.skip(f"needs network namespaces, and {cage.why}")

    def run(program, **options):
        argv = [*cage.prefix, sys.executable, "-c", program]
        return subprocess.run(argv, capture_output=True, text=True, check=False, **options)

    return run


def test_there_is_no_way_out(caged):
    program = (
        "import socket\n"
        "for address in (('203.0.113.7', 443), ('8.8.8.8', 53)):\n"
        "    try: socket.create_connection(address, timeout=5)\n"
        "    except OSError as error: print(error.strerror)\n"
    )
    assert caged(program).stdout.splitlines() == ["Network is unreachable"] * 2


def test_a_server_of_the_test_itself_is_not_reached(caged):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"
        assert "ConnectionRefusedError" in caged(program).stderr


def test_its_own_loopback_works(caged):
    program = (
        "import socket\n"
        "server = socket.create_server(('localhost', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "client.send(b'hello'); print(server.accept()[0].recv(5))\n"
    )
    assert caged(program).stdout == "b'hello'\n"


def test_user_groups_and_what_is_written_are_the_same(caged, tmp_path):
    file = tmp_path / "written"
    program = f"import os; open({str(file)!r}, 'w').close(); print(os.getuid(), os.geteuid(), os.getgid())"
    assert caged(program).stdout == f"{os.getuid()} {os.geteuid()} {os.getgid()}\n"
    assert (file.stat().st_uid, file.stat().st_gid) == (os.geteuid(), os.getegid())


def test_pid_streams_environment_and_exit_code_are_the_command_s_own(caged):
    program = "import os, sys; print(os.environ['X'], input()); sys.exit(os.getppid() % 256)"
    ended = caged(program, input="typed", env={**os.environ, "X": "y"})
    assert ended.stdout == "y typed\n"
    assert ended.returncode == os.getpid() % 256


def test_a_command_that_is_not_there_says_so(caged):
    argv = [*netns.cage().prefix, "no-such-command"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 127
    assert "no-such-command" in ended.stderr


def test_somebody_who_is_not_root_is_himself_in_there():
    if os.getuid():
        pytest.skip("needs root, to become somebody else; every other test here is about them")
    python = next(filter(os.path.exists, ("/usr/bin/python3", "/usr/local/bin/python3")), None)
    if python is None:
        pytest.skip("needs a Python that everybody may run")
    command = "id -u; cat /proc/net/dev | wc -l; grep CapEff /proc/self/status"
    ended = subprocess.run(
        [python, "-I", "-S", "-c", SCRIPT.read_text(), "--", "sh", "-c", command],
        capture_output=True,
        text=True,
        cwd="/",
        user=65534,
        group=65534,
        extra_groups=[],
        check=False,
    )
    user, interfaces, capabilities = ended.stdout.splitlines()
    assert user == "65534", ended.stderr
    assert int(interfaces) == 3, "two lines of headings, and the loopback"
    assert int(capabilities.split()[1], 16) == 0


def test_where_there_are_no_namespaces_the_reason_is_given(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    cage = netns.cage()
    assert cage.prefix == ()
    assert "darwin" in cage.why


def test_a_system_that_refuses_is_believed(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    cage = netns.cage()
    assert cage.prefix == ()
    assert "left with 1" in cage.why


def test_the_script_needs_nothing_but_the_standard_library(guest_python):
    argv = [guest_python, "-I", "-S", str(SCRIPT), "--", "/bin/true"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 125), ended.stderr
