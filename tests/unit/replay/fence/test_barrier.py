"""A command in a fence: it runs as it always does, and neither a packet nor a byte gets out."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from playhead.errors import NoFence
from playhead.replay.fence import barrier
from playhead.replay.fence.inside import FenceNeeds

RUNNER = Path(__file__).with_name("fenced.py")
NOBODY = 65534
KINDS = ("namespaces", "landlock")

C_CLIENT = """
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sockaddr_in to = {AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 7;
    return write(fd, "hello", 5) != 5;
}
"""
CTYPES_CLIENT = """
import ctypes, struct, sys
libc = ctypes.CDLL(None)
fd = libc.socket(2, 1, 0)
to = struct.pack("=HHI8x", 2, int.from_bytes(struct.pack(">H", int(sys.argv[1])), "little"), 0x0100007F)
sys.exit(7 if libc.connect(fd, to, 16) else 0)
"""
PYTHON_CLIENT = """
import socket, sys
try: socket.create_connection(("127.0.0.1", int(sys.argv[1])))
except OSError: sys.exit(7)
"""
PERL_CLIENT = 'use IO::Socket::INET; IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit 7'
NODE_CLIENT = (
    'require("net").connect(+process.argv[1], "127.0.0.1").on("error", () => process.exit(7))'
    '.on("connect", () => process.exit(0))'
)
DAEMON = '(setsid sh -c "sleep 0; : < /dev/null; exec bash -c \\"exec 3<>/dev/tcp/127.0.0.1/$1\\"" &); wait'


@pytest.fixture(scope="module")
def static_client():
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        source, program = Path(folder) / "client.c", Path(folder) / "client"
        source.write_text(C_CLIENT)
        subprocess.run([compiler, "-static", str(source), "-o", str(program)], check=True)
        yield str(program)


@pytest.fixture
def server():
    """Port, and how often somebody connected."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        seen: list[object] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                seen.append(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1], seen
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def workplace():
    """A folder of `nobody` below one of another user: pytest's own are closed to other users."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        inner = Path(folder) / "project"
        inner.mkdir()
        if not os.getuid():
            os.chown(inner, NOBODY, NOBODY)
        yield inner


def python_of_all() -> str:
    """One that another user may execute."""
    return next(
        filter(os.path.exists, ("/usr/bin/python3", "/usr/local/bin/python3")), sys.executable
    )


def fenced(command, kind="namespaces", *, as_user=None, **options):
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    python, given = sys.executable, {}
    if as_user is not None:
        python = python_of_all()
        given = {"user": as_user, "group": as_user, "extra_groups": [], "cwd": "/"}
    argv = [python, str(RUNNER), kind, *map(str, words), "--", *map(str, command)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, **given)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    if "refused" in found and kind == "namespaces" and "denied" not in options:
        pytest.skip(f"needs namespaces, and {found['refused']}")
    return found


def clients(port, static):
    node = shutil.which("node")
    perl = shutil.which("perl")
    curl = shutil.which("curl")
    found = {
        "static C": [static, port],
        "bash": ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} || exit 7"],
        "python -I -S": [python_of_all(), "-I", "-S", "-c", PYTHON_CLIENT, port],
        "ctypes": [python_of_all(), "-c", CTYPES_CLIENT, port],
        "daemon": ["bash", "-c", f"{DAEMON}; exit 7", "sh", port],
    }
    found |= {"perl": [perl, "-e", PERL_CLIENT, port]} if perl else {}
    found |= {"curl": [curl, "-sf", f"http://127.0.0.1:{port}/"]} if curl else {}
    found |= {"node": [node, "-e", NODE_CLIENT, port]} if node else {}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_client_in_any_language_reaches_a_server_outside(kind, server, static_client):
    port, seen = server
    for name, command in clients(port, static_client).items():
        found = fenced(command, kind)
        assert found.get("status") == 7, (name, found)
    assert seen == []


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("kind", KINDS)
def test_neither_does_one_of_an_ordinary_user(kind, server, static_client):
    port, seen = server
    for name, command in clients(port, static_client).items():
        found = fenced(command, kind, as_user=NOBODY)
        assert found.get("status") == 7, (name, found)
    assert seen == []


def test_where_namespaces_are_denied_the_next_fence_is_taken(server, static_client):
    port, seen = server
    found = fenced([static_client, port], "namespaces,landlock", denied="yes")
    assert found.get("kind") == "landlock" or "landlock" in found["refused"]
    assert found.get("status", 7) == 7
    assert seen == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_listener_of_the_launcher_is_reached(kind):
    found = fenced(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$INSIDE"], kind)
    assert found["reached"], found


def test_a_program_may_serve_itself():
    program = (
        "import socket\n"
        "server = socket.create_server(('localhost', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "client.send(b'hello'); print(server.accept()[0].recv(5))\n"
    )
    assert fenced([sys.executable, "-c", program])["printed"] == "b'hello'\n"


def test_files_are_written_deleted_and_renamed_in_memory_alone(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "folder").mkdir()
    script = (
        "echo new > new; echo more >> old; rm -r folder; mkdir made; mv new made/; cat old made/new"
    )
    found = fenced(["bash", "-c", script], own=tmp_path)
    assert found["printed"] == "oldmore\nnew\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "old"]
    assert (tmp_path / "old").read_text() == "old"
    assert str(tmp_path / "old") in found["written"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_an_ordinary_user_writes_below_folders_of_others(workplace):
    script = "echo new > new && cat new && id -u && echo x > /tmp/playhead-fence-test"
    found = fenced(["sh", "-c", script], own=workplace, as_user=NOBODY)
    assert found["printed"] == f"new\n{NOBODY}\n"
    assert list(workplace.iterdir()) == []
    assert not Path("/tmp/playhead-fence-test").exists()


@pytest.fixture
def image(workplace):
    """A mount below the temporary folder, as an AppImage makes one."""
    (workplace / "image").mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(workplace / "image")]
    if os.getuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root, to mount a file system and to become another user")
    try:
        (workplace / "image" / "program").write_text("program")
        yield workplace / "image"
    finally:
        subprocess.run(["umount", str(workplace / "image")], check=True)


# Names with the signs that separate the options of an overlay.
WRITES_BESIDE_A_MOUNT = """
cat image/program; mktemp > /dev/null && echo x > /tmp/playhead-fence-test &&
echo more >> own && mv own moved && rm gone && cat kept moved link &&
echo new > a,b:c/new && ls a,b:c && echo new > image/new && cat image/new
python3 -c "import socket; print(socket.socket(socket.AF_UNIX).connect_ex('daemon'))"
"""


def test_an_ordinary_user_writes_temporary_files_beside_a_mount(workplace, image):
    for name in ("own", "gone", "kept", "a,b:c/old"):
        (workplace / name).parent.mkdir(exist_ok=True)
        (workplace / name).write_text(f"{name}\n")
    (workplace / "link").symlink_to("kept")
    for one in (workplace, *workplace.iterdir(), workplace / "a,b:c" / "old"):
        os.chown(one, NOBODY, NOBODY, follow_symlinks=False)
    before = sorted((path, path.stat().st_mtime_ns) for path in workplace.rglob("*"))
    kept = Path(f"/tmp/playhead-fence-kept-{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(workplace / "daemon"))
        daemon.listen()
        (workplace / "daemon").chmod(0o777)
        script = f"{WRITES_BESIDE_A_MOUNT}echo tape > {kept}/tape"
        found = fenced(["sh", "-c", script], own=workplace, as_user=NOBODY, keep=kept)
        (workplace / "daemon").unlink()
    assert (kept / "tape").read_text() == "tape\n"
    shutil.rmtree(kept)
    shown = "programkept\nown\nmore\nkept\nnew\nold\nnew\n"
    assert found["printed"] == f"{shown}{errno.ECONNREFUSED}\n"
    assert sorted((path, path.stat().st_mtime_ns) for path in workplace.rglob("*")) == before
    assert not Path("/tmp/playhead-fence-test").exists()
    written = {str(workplace / name) for name in ("own", "moved", "gone", "a,b:c/new", "image/new")}
    assert {one for one in found["written"] if one.startswith(str(workplace))} == written


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_real(kind, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    fenced(["sh", "-c", f"echo tape > {kept}/tape; echo gone > {tmp_path}/gone"], kind, keep=kept)
    assert (kept / "tape").read_text() == "tape\n"
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_sockets_of_daemons_are_not_reached(kind):
    client = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); sys.exit(s.connect_ex(sys.argv[1]))"
    )
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(f"{folder}/daemon")
        daemon.listen()
        found = fenced([sys.executable, "-c", client, f"{folder}/daemon"], kind)
    assert found["status"] != 0, found


@pytest.mark.parametrize("kind", KINDS)
def test_no_process_outside_gets_a_signal(kind):
    from playhead.replay.fence import landlock

    if landlock.version() < 6:
        pytest.skip("needs Landlock with scopes, which came with Linux 6.12")
    found = fenced(["bash", "-c", f"kill -0 {os.getpid()}"], kind)
    assert "not permitted" in found["printed"]


def test_no_capability_is_left_that_could_open_the_fence():
    found = fenced(
        ["sh", "-c", "grep CapBnd /proc/self/status; mount -t tmpfs none /mnt || echo refused"]
    )
    left = int(found["printed"].split()[1], 16)
    assert not left & (1 << 21), "CAP_SYS_ADMIN"
    assert not left & (1 << 19), "CAP_SYS_PTRACE"
    assert "refused" in found["printed"]


def test_pid_parent_and_exit_code_are_the_command_s_own():
    program = "import os, sys; print(os.getpid()); sys.exit(3)"
    found = fenced([sys.executable, "-c", program])
    assert int(found["printed"]) == found["pid"]
    assert found["status"] == 3


def test_a_command_that_is_not_there_is_an_error_of_the_start():
    fence = built()
    with pytest.raises(FileNotFoundError):
        fence.start(["no-such-command"], dict(os.environ), [], set())


def test_a_script_without_an_interpreter_line_runs_as_shells_run_it(tmp_path):
    script = tmp_path / "script"
    script.write_text("exit 4\n")
    script.chmod(0o700)
    assert fenced([script])["status"] == 4


def test_a_fence_that_is_not_used_leaves_no_process():
    fence = built()
    fence.abandon()
    with pytest.raises(ChildProcessError):
        os.waitpid(fence.pid, os.WNOHANG)


def test_another_platform_is_refused_with_its_name(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NoFence, match="darwin"):
        barrier.build(FenceNeeds(own=()))


def built():
    try:
        return barrier.build(FenceNeeds(own=()))
    except NoFence as error:
        pytest.skip(f"needs a fence, and {error}")
