"""Run a command in a fence, and print how it went as JSON.

`fenced.py KIND[,KIND] [--denied] [--own FOLDER] [--keep FOLDER] -- COMMAND…`. `--denied`: in a
process that may neither unshare nor mount, as in many containers.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4] / "src"))

from playhead.errors import NoFence
from playhead.replay.fence import barrier, kernel, seccomp
from playhead.replay.fence.inside import FenceNeeds


def deny() -> None:
    rules = [seccomp.SyscallRule(name, seccomp.refuse(1)) for name in ("unshare", "mount")]
    kernel.no_new_privileges()
    seccomp.install(seccomp.compiled(rules, foreign=seccomp.ALLOW))


def main(argv: list[str]) -> dict[str, object]:
    at = argv.index("--")
    words, command = argv[:at], argv[at + 1 :]
    given = dict(zip(words[1::2], words[2::2], strict=True))
    if "--denied" in given:
        deny()
    own = tuple(filter(None, [given.get("--own"), "/tmp"]))
    try:
        fence = barrier.build(FenceNeeds(own=own), words[0].split(","))
    except NoFence as error:
        return {"refused": str(error)}
    if "--keep" in given:
        os.makedirs(given["--keep"], exist_ok=True)  # perhaps only now: the fence is closed
        fence.keep(given["--keep"], writable=True)
    listener = fence.listen()
    read, write = os.pipe()
    env = {**os.environ, "INSIDE": str(listener.getsockname()[1])}
    if "--own" in given:
        os.chdir(given["--own"])
    pid = fence.start(command, env, [(write, (1, 2))], set())
    os.close(write)
    with open(read, errors="replace") as output:
        printed = output.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        reached = bool(listener.accept())
    except BlockingIOError:
        reached = False
    written = sorted(fence.written())
    return {"kind": fence.kind, "status": status, "printed": printed, "pid": pid} | {
        "reached": reached,
        "written": written,
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
