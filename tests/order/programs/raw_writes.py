"""Threads write bytes to stdout with `os.write` while they run processes; one of these prints, too."""

import os
import subprocess
import sys
import threading


def work(n):
    for k in range(4):
        subprocess.run(["sh", "-c", f"exit {k}"], check=False)
        os.write(1, b"wrote %d %d\n" % (n, k))
    subprocess.run(["echo", f"child {n}"], check=True)
    os.write(sys.stdout.fileno(), b"end %d\n" % n)


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print("done")
