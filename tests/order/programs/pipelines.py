"""Subprocess pipelines in threads: the output of one process is the input of the next."""

import subprocess
import threading


def pipeline(n):
    first = subprocess.Popen(
        ["sh", "-c", f"for i in 3 1 2; do echo {n}$i; sleep 0.00{n}; done"],
        stdout=subprocess.PIPE,
    )
    second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
    first.stdout.close()
    for line in second.stdout:
        print(n, line.strip())
    print(n, "exits", first.wait(), second.wait())


threads = [threading.Thread(target=pipeline, args=(n,)) for n in range(1, 5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
