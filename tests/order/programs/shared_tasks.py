"""Workers that take tasks from one queue, print what they do, and log to stderr."""

import logging
import multiprocessing
import sys
import urllib.request
from concurrent.futures import ProcessPoolExecutor, as_completed


def ask(n, url):
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    print("asks", n)
    with urllib.request.urlopen(f"{url}/wait?n={n}&ms={n * 7 % 30}") as answer:
        logging.getLogger("worker").info("got %s", len(answer.read()))
    return n


def work(name, tasks, url):
    for n in iter(tasks.get, None):
        print(name, "takes", ask(n, url), flush=True)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        jobs = [pool.submit(ask, n, sys.argv[1]) for n in range(7)]
        for job in as_completed(jobs):
            print("done", job.result(), flush=True)
    tasks = context.Queue()
    workers = [context.Process(target=work, args=(n, tasks, sys.argv[1])) for n in ("a", "b")]
    for one in workers:
        one.start()
    for n in [*range(6), None, None]:
        tasks.put(n)
    for one in workers:
        one.join()
    print("end")
