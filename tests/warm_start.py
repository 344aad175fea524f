"""Run `playhead …` in a process of its own, without the quarter of a second in which it imports its modules.

A server imports Playhead once; `run` lets it fork for each command. The command is a real process: it has
its own working folder, environment, streams, exit code and end. Tests of the start itself do not use this module.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading

# Imported before the fork. These import what `record`, `replay`, `fork`, `loop` and `show` need.
MODULES = (
    "playhead.cli",
    "playhead.library.catalogue",
    "playhead.library.engine",
    "playhead.loop.steps",
    "playhead.story",
    "playhead.views.text.report",
)
VERBS = ("record", "replay", "fork", "batch", "loop", "show", "diff", "verify")
# An interpreter reads these at its start, so each set of them has a server of its own.
STARTING = ("PYTHON", "LC_", "LANG")
MOST_SERVERS = 3

PLAYHEAD = [sys.executable, "-m", "playhead"]
KNOWN = (
    {"capture_output": True, "check": False},
    {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "check": False},
)

_servers: dict[tuple, tuple[subprocess.Popen, socket.socket]] = {}
_lock = threading.Lock()


def run(argv, *, cwd=None, env=None, text=False, timeout=None, stdin=None, **options):
    """As `subprocess.run`, which it calls for commands and options that it does not know."""
    argv = [*map(os.fspath, argv)]
    env = dict(os.environ if env is None else env)
    is_known = argv[:3] == PLAYHEAD and options in KNOWN and stdin in (None, subprocess.DEVNULL)
    if not is_known or not _is_served(env):
        more = {} if "input" in options else {"stdin": stdin}
        check = options.pop("check", False)
        return subprocess.run(
            argv, cwd=cwd, env=env, text=text, timeout=timeout, check=check, **more, **options
        )
    with _lock, open(os.devnull, "rb") as nothing:
        given = nothing.fileno() if stdin == subprocess.DEVNULL else 0
        ended = _forked(argv, os.fspath(cwd or os.getcwd()), env, given, timeout)
    if text:
        ended.stdout = ended.stdout.decode().replace("\r\n", "\n")
        ended.stderr = ended.stderr.decode().replace("\r\n", "\n")
    return ended


def _is_served(env):
    """Not for a path of a single test: its server would start for one command."""
    key = _at_start(env)
    return "PYTHONPATH" not in env and (key in _servers or len(_servers) < MOST_SERVERS)


def _at_start(env):
    return tuple(sorted(one for one in env.items() if one[0].startswith(STARTING)))


def _forked(argv, cwd, env, stdin, timeout):
    (out, their_out), (err, their_err) = os.pipe(), os.pipe()
    asked = json.dumps({"argv": argv, "cwd": cwd, "env": env}).encode()
    wire = _connect(env)
    socket.send_fds(wire, [len(asked).to_bytes(4, "big")], [stdin, their_out, their_err])
    wire.sendall(asked)
    os.close(their_out)
    os.close(their_err)
    pid = int.from_bytes(_exactly(wire, 4), "big")
    try:
        stdout, stderr = _read(out, err, timeout)
    except subprocess.TimeoutExpired as late:
        os.kill(pid, signal.SIGKILL)
        _exactly(wire, 4)
        raise subprocess.TimeoutExpired(argv, timeout) from late
    finally:
        os.close(out)
        os.close(err)
    code = int.from_bytes(_exactly(wire, 4), "big", signed=True)
    return subprocess.CompletedProcess(argv, code, stdout, stderr)


def _read(out, err, timeout):
    """Everything that the two pipes give until all who have them are gone."""
    pieces = {out: [], err: []}
    with selectors.DefaultSelector() as ready:
        for pipe in pieces:
            ready.register(pipe, selectors.EVENT_READ)
        while ready.get_map():
            found = ready.select(timeout)
            if not found:
                raise subprocess.TimeoutExpired("playhead", timeout)
            for key, _ in found:
                piece = os.read(key.fd, 65536)
                pieces[key.fd].append(piece)
                if not piece:
                    ready.unregister(key.fd)
    return b"".join(pieces[out]), b"".join(pieces[err])


def _connect(env):
    key = _at_start(env)
    if key not in _servers or _servers[key][0].poll() is not None:
        ours, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**kept, **dict(key)}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        _servers[key] = process, ours
        atexit.register(_stop, process, ours)
    return _servers[key][1]


def _stop(process, wire):
    wire.close()
    process.terminate()
    process.wait()


def _exactly(wire, size):
    got = b""
    while len(got) < size:
        piece = wire.recv(size - len(got))
        if not piece:
            raise EOFError("the server of warm starts has ended")
        got += piece
    return got


def _serve(wire):
    """Fork for each request until the tests are over; returns in each child, with the words of its command."""
    while True:
        head, fds, _, _ = socket.recv_fds(wire, 4, 3)
        if not head:
            return None
        asked = json.loads(_exactly(wire, int.from_bytes(head, "big")))
        pid = os.fork()
        if pid == 0:
            wire.close()
            _become(asked, fds)
            return asked["argv"][3:]
        for fd in fds:
            os.close(fd)
        wire.sendall(pid.to_bytes(4, "big"))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        wire.sendall(code.to_bytes(4, "big", signed=True))


def _become(asked, fds):
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
    for fd in fds:
        if fd > 2:
            os.close(fd)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.orig_argv[:] = asked["argv"]
    # As an interpreter opens them at its start; the old ones remember the files they stood for.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115  they stay open
    sys.stdout = sys.__stdout__ = _output(1, "strict")
    sys.stderr = sys.__stderr__ = _output(2, "backslashreplace")


def _output(fd, errors):
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = open(fd, "wb", 0 if unbuffered else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, errors=errors, write_through=unbuffered, line_buffering=fd == 2)


def _preload():
    for name in MODULES:
        importlib.import_module(name)
    from playhead.cli import VERBS as ALL
    from playhead.launch import closing

    for verb in VERBS:
        importlib.import_module(f"playhead.cli.{ALL[verb][0].partition(':')[0]}")
    closing.prepare()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    del sys.path[0]  # this folder
    _preload()
    with contextlib.suppress(ConnectionError, KeyboardInterrupt):
        words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        import playhead.__main__

        sys.argv = [playhead.__main__.__file__, *words]
        playhead.__main__.main()
