"""The cost of following programs, of watching connections, and of the fence around a replay.

    python -m bench.fence [ROUNDS]

A program in C starts `/bin/true` and connects to a listener, and measures each. Bare and recorded runs take turns
within each round, so that other work on the machine affects them alike. Shown are the median and the best of all
samples, and the difference to bare; on a busy machine only the best says something.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from playhead import clock

SOURCE = r"""
#include <arpa/inet.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
int main(int argc, char **argv) {
    int rounds = atoi(argv[2]);
    struct sockaddr_in to = {AF_INET, htons(atoi(argv[1])), {htonl(INADDR_LOOPBACK)}, {0}};
    char *words[] = {"true", NULL};
    for (int i = 0; i < rounds; i++) {
        long began = now();
        if (argc > 3) {
            pid_t pid;
            if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ)) return 1;
            waitpid(pid, NULL, 0);
        } else {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
            close(fd);
        }
        printf("%ld\n", now() - began);
    }
    return 0;
}
"""
SAMPLES = 60
GOALS_MS = {"exec": 2.0, "connect": 0.2, "fence": 60.0}


def accept_all(listener: socket.socket) -> None:
    while True:
        try:
            listener.accept()[0].close()
        except OSError:
            return


def measured(argv: list[str], env: dict[str, str]) -> list[float]:
    """Run a program that prints nanoseconds; return milliseconds."""
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return [int(line) / 1e6 for line in done.stdout.split()]


def started(argv: list[str], env: dict[str, str]) -> float:
    """Run a replay; return its duration. 6: unproven, which a replay without a fence always is."""
    began = clock.mono_ns()
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 6):
        sys.exit(done.stderr)
    return (clock.mono_ns() - began) / 1e6


def show(name: str, bare: list[float], other: list[float]) -> None:
    median, best = statistics.median, min
    more, least = median(other) - median(bare), best(other) - best(bare)
    print(
        f"{name:8} bare {median(bare):7.2f} ms (best {best(bare):6.2f})   "
        f"+{more:6.2f} ms (best +{least:5.2f})   goal {GOALS_MS[name]} ms"
    )


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "costs.c").write_text(SOURCE, encoding="utf-8")
        program = str(folder / "costs")
        subprocess.run(["cc", "-O2", "-o", program, str(folder / "costs.c")], check=True)
        env = {**os.environ, "PLAYHEAD_HOME": str(folder / "store")}
        (folder / "work").mkdir()
        os.chdir(folder / "work")  # an empty workspace
        playhead = [sys.executable, "-m", "playhead"]
        record = [*playhead, "record", "--quiet", "--"]
        found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in GOALS_MS}
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
            words = [program, str(listener.getsockname()[1]), str(SAMPLES)]
            for _ in range(rounds):
                for name, more in (("exec", ["exec"]), ("connect", [])):
                    bare, other = found[name]
                    bare += measured([*words, *more], env)
                    other += measured([*record, *words, *more], env)
        subprocess.run([*record, "/bin/true"], env=env, check=True)
        for _ in range(3 * rounds):
            found["fence"][0].append(started([*playhead, "replay", "last", "--unfenced"], env))
            found["fence"][1].append(started([*playhead, "replay", "last"], env))
        for name, (bare, other) in found.items():
            show(name, bare, other)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
