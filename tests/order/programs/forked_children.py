"""Children that the program forks itself: `os.wait` and `waitpid(-1)` reap them in any order, and one is killed in a
sleep.
"""

import os
import signal
import sys
import time
import urllib.request

URL = sys.argv[1]


def fork(n):
    pid = os.fork()
    if not pid:
        with urllib.request.urlopen(f"{URL}/wait?n={n}&ms={n * 7 % 20}") as answer:
            answer.read()
        os._exit(n)
    return pid


children = {fork(n): n for n in range(8)}
while len(children) > 4:
    pid, status = os.wait()
    print("ended", children.pop(pid), os.waitstatus_to_exitcode(status), flush=True)
while children:
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid:
        print("ended", children.pop(pid), os.waitstatus_to_exitcode(status), flush=True)
    else:
        time.sleep(0.002)

pid = os.fork()
if not pid:
    while True:
        time.sleep(0.02)
        print("still there", flush=True)
time.sleep(0.05)
os.kill(pid, signal.SIGKILL)
print("killed", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
