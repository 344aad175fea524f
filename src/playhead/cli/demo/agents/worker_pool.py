"""Three workers take tasks from one store. `python worker_pool.py` records a session, `… check` replays it."""

import subprocess
import sys
import threading
from collections.abc import Callable

import playhead


class TaskStore:
    """Names of tasks and their states; the workers share it."""

    def __init__(self, tasks: dict[str, str]) -> None:
        self.tasks = dict(tasks)
        self._lock = threading.Lock()

    def claim_next(self, worker: str) -> str | None:
        with self._lock:
            for name, state in self.tasks.items():
                if state == "todo":
                    self.tasks[name] = f"claimed by {worker}"
                    return name
        return None

    def mark_complete(self, name: str, result: str) -> None:
        with self._lock:
            self.tasks[name] = f"done: {result}"


def work(store: TaskStore, worker: str, ready: Callable[[], object] = lambda: None) -> None:
    while name := store.claim_next(worker):
        ready()
        built = subprocess.run(
            ["sh", "-c", f"echo built {name}"], capture_output=True, text=True, check=True
        )
        store.mark_complete(name, built.stdout.strip())


def watched(tasks: dict[str, str]) -> TaskStore:
    store = TaskStore(tasks)
    playhead.watch(store, snapshot="tasks", mutations=["claim_next", "mark_complete"])
    return store


def record() -> None:
    with playhead.record(name="worker-pool", intercept=True):
        store = watched({f"task-{number}": "todo" for number in range(6)})
        # The workers start each round together, so that all three get tasks.
        ready = threading.Barrier(3)

        def start(worker: str) -> None:
            with playhead.lane(worker):
                work(store, worker, ready.wait)

        threads = [threading.Thread(target=start, args=(f"worker-{n}",)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def check() -> bool:
    session = playhead.load("last")
    report = playhead.replay_session(
        session, lambda world: work(watched(world.snapshot), world.worker)
    )
    print(report)
    return report.passed


if __name__ == "__main__":
    if "check" in sys.argv:
        sys.exit(0 if check() else 1)
    record()
