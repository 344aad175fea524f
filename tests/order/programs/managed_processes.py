"""`multiprocessing`: a manager's dictionary and queue, pipes, an event and a lock between processes."""

import multiprocessing
import sys
import urllib.request


def work(name, pipe, go, results, url):
    go.wait()
    for n in range(3):
        with urllib.request.urlopen(f"{url}/wait?n={name}{n}&ms={n * 7 % 20}") as answer:
            pipe.send((name, n, len(answer.read())))
        results[f"{name}{n}"] = n
    pipe.close()


def main(url):
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        results, go = manager.dict(), context.Event()
        workers, pipes = [], []
        for name in "abc":
            mine, theirs = context.Pipe(duplex=False)
            pipes.append(mine)
            args = (name, theirs, go, results, url)
            workers.append(context.Process(target=work, args=args))
            workers[-1].start()
            theirs.close()
        go.set()
        while pipes:
            for pipe in multiprocessing.connection.wait(pipes):
                try:
                    print(*pipe.recv())
                except EOFError:
                    pipes.remove(pipe)
        for one in workers:
            one.join()
        print(sorted(results.items()), [one.exitcode for one in workers])


if __name__ == "__main__":
    import multiprocessing.connection

    main(sys.argv[1])
