"""An orchestrator with workers in threads and events of its own. Playhead is in three of its lines.

python orchestrator.py
playhead show last
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import playhead


class Job:
    """Emits what happens, as orchestrators do; who listens is not its business."""

    def __init__(self, tasks: list[str]) -> None:
        self.tasks = tasks

    def emit(self, kind: str, data: dict[str, Any]) -> None:
        print(kind, data)

    def work(self, number: int, task: str) -> str:
        with playhead.lane(f"worker-{number}"):
            self.emit("task:started", {"task": task})
            said = subprocess.run(["echo", task], capture_output=True, text=True, check=True).stdout
            self.emit("task:done", {"task": task, "said": said.strip()})
        return said

    def run(self) -> None:
        self.emit("job:planned", {"tasks": self.tasks})
        with ThreadPoolExecutor(max_workers=3) as pool:
            list(pool.map(self.work, range(len(self.tasks)), self.tasks))
        self.emit("job:finished", {"tasks": len(self.tasks)})


if __name__ == "__main__":
    with playhead.record(name="orchestrator", intercept=True):
        job = Job(["read the inbox", "write the answers", "file the rest"])
        playhead.tap(job, "emit")
        job.run()
