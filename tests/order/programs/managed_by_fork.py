"""Forked processes fill a queue, a manager's dictionary, and a pipe each."""

import multiprocessing
import multiprocessing.connection
import random
import time


def work(results, items, pipe, name):
    for n in range(3):
        time.sleep(random.random() * 0.004)
        results[name, n] = n
        items.put((name, n))
    pipe.send(("end", name))
    pipe.close()


def main():
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        results, items, workers, pipes = manager.dict(), context.Queue(), [], []
        for name in range(3):
            mine, theirs = context.Pipe(duplex=False)
            workers.append(context.Process(target=work, args=(results, items, theirs, name)))
            workers[-1].start()
            theirs.close()
            pipes.append(mine)
        for _ in range(9):
            print("item", items.get())
        while pipes:
            for pipe in multiprocessing.connection.wait(pipes):
                try:
                    print(pipe.recv())
                except EOFError:
                    pipes.remove(pipe)
        for one in workers:
            one.join()
        print(sorted(results.items()), [one.exitcode for one in workers])


if __name__ == "__main__":
    main()
