"""Six threads of a pool each run the same command: the program prints which thread got which answer."""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

counter = Path(tempfile.mkdtemp()) / "count"
step = f"n=$(cat {counter} 2>/dev/null || echo 0); n=$((n+1)); echo $n > {counter}; echo $n"
script = f"(flock 9; {step}) 9>{counter}.lock"


def run(n):
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return n, done.stdout.strip()


with ThreadPoolExecutor(6) as pool:
    for n, answer in pool.map(run, range(12)):
        print(n, "got", answer)
sys.stdout.flush()
