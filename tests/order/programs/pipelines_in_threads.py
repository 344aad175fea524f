"""Pipelines of processes, one in each thread, read line by line; some are killed, one runs into its timeout."""

import subprocess
import threading

guard = threading.Lock()


def say(*words):
    with guard:
        print(*words)


def pipeline(n):
    script = f"for i in 1 2 3 4; do echo {n}.$i; sleep 0.00{n + 2}; done"
    first = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
    second = subprocess.Popen(
        ["sed", "-u", "s/^/line /"], stdin=first.stdout, stdout=subprocess.PIPE, text=True
    )
    first.stdout.close()
    for seen, line in enumerate(second.stdout):
        say(line.strip())
        if n == 3 and seen == 1:
            first.kill()
    say("ended", n, second.wait(), first.wait())
    try:
        subprocess.run(["sleep", "0.2" if n == 1 else "0.01"], timeout=0.1, check=True)
        say("slept", n)
    except subprocess.TimeoutExpired:
        say("late", n)


threads = [threading.Thread(target=pipeline, args=(n,)) for n in range(5)]
for one in threads:
    one.start()
for one in threads:
    one.join()
