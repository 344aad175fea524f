"""Commands that take too long: the error says how long, and a timer is stopped by a signal."""

import signal
import subprocess

for seconds in ("0.01", "5"):
    try:
        print(subprocess.run(["sleep", seconds], timeout=0.2, check=False).returncode)
    except subprocess.TimeoutExpired as error:
        print(error)


def stop(*_):
    raise TimeoutError("too long")


signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    subprocess.run(["sleep", "5"], check=True)
except TimeoutError as error:
    print(error)
