"""Worker processes that print themselves, beside children of threads that inherit stdout."""

import multiprocessing
import subprocess
import threading


def work(n):
    print("worker", n, flush=True)
    return n * n


def run(n):
    subprocess.run(["sh", "-c", f"sleep 0.0{n}"], check=True)
    print("thread", n, flush=True)


if __name__ == "__main__":
    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 4)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for one in threads:
            one.start()
        print(sorted(pool.map(work, range(4))), flush=True)
        for one in threads:
            one.join()
