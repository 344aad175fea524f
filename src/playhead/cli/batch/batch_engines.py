"""Run the jobs of a batch on a cluster: Dask or Ray. Knows the two libraries; not what a job does.

Both are extras, imported when `--on` names them. An engine hands jobs to workers and repeats those of a worker that
died. Playhead only keeps as many jobs in flight as keep all workers busy.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

from playhead._version import __version__
from playhead.cli.batch.batch_job import Job
from playhead.cli.batch.engine_job import failed, members_of, run_on_worker, version
from playhead.errors import EngineError, UsageError
from playhead.story.verdicts import Verdict, verdict_from

# How often an engine repeats a job whose worker died.
_RETRIES = 3
_CONNECT_S = 10
# Jobs in flight for each slot: a worker that has finished finds the next job waiting. New jobs are submitted together
# when half of them are done: Dask takes several times as long for single ones.
_AHEAD = 8


class Engine(Protocol):
    """A cluster. A handle identifies a submitted job."""

    def slots(self) -> int:
        """The number of jobs that run at the same time. EngineError: no worker, or one without Playhead."""

    def submit(self, jobs: Sequence[dict[str, Any]]) -> list[Any]:
        """Hand these jobs to the cluster. Return a handle for each of them."""

    def wait(self, handles: Collection[Any]) -> list[Any]:
        """Wait until at least one of these is done. Return the finished ones."""

    def result(self, handle: Any) -> dict[str, Any]:
        """Return the verdict as JSON. Any exception means that the engine gave up the job."""

    def close(self) -> None:
        """Cancel the remaining jobs, and disconnect."""


def open_engine(where: str) -> Engine:
    """`dask:tcp://host:8786`, `ray:auto`, `ray:ray://host:10001`. EngineError: it cannot be reached."""
    name, _, address = where.partition(":")
    if name == "dask" and address:
        return DaskEngine(address)
    if name == "ray":
        return RayEngine(address or "auto")
    raise UsageError(
        f"--on {where}: expected dask:tcp://HOST:PORT, ray:auto or ray:ray://HOST:PORT."
    )


class EnginePool:
    """The counterpart of `WorkerPool` for an engine. `size`: None for all slots of the cluster."""

    def __init__(self, where: str, size: int | None, limit_s: float) -> None:
        self._engine = open_engine(where)
        try:
            self._slots = min(size or 10**6, self._engine.slots())
        except BaseException:
            self._engine.close()
            raise
        # If the user sets a limit, no job waits at a slot.
        self._in_flight = self._slots if size is not None else _AHEAD * self._slots
        self._low = self._slots if size is not None else self._in_flight // 2 + 1
        self._limit_s = limit_s

    def verdicts(self, jobs: Iterator[Job | None]) -> Generator[Verdict, None, None]:
        """Yield verdicts as they arrive. Closing the generator cancels the jobs that are left.

        None among the jobs: the next one must wait for a verdict. With none in flight, the batch ends there.
        """
        running: dict[Any, dict[str, Any]] = {}
        try:
            while True:
                if len(running) < self._low:
                    # Without `None`, which asks for a pause.
                    wanted = iter(lambda: next(jobs, None), None)
                    more = islice(wanted, self._in_flight - len(running))
                    added = [members_of(job, self._limit_s) for job in more]
                    running.update(zip(self._engine.submit(added), added, strict=True))
                if not running:
                    return
                for handle in self._engine.wait(running.keys()):
                    yield self._verdict(handle, running.pop(handle))
        finally:
            self._engine.close()

    def _verdict(self, handle: Any, members: dict[str, Any]) -> Verdict:
        try:
            return verdict_from(self._engine.result(handle))
        except Exception as error:  # noqa: BLE001  any exception of an engine ends one job
            return failed(members, f"the cluster failed: {type(error).__name__}: {error}"[:300])


class DaskEngine:
    """A Dask cluster, by the address of its scheduler."""

    def __init__(self, address: str) -> None:
        self._dask = _library("distributed", "dask")
        self._address = address
        try:
            self._client = self._dask.Client(address, timeout=_CONNECT_S)
        except (OSError, ValueError) as error:
            raise _unreachable("dask", address, error) from None
        # It reports finished jobs with their results. Asking for each of them takes twice the processor time.
        self._finished = self._dask.as_completed(
            loop=self._client.loop, with_results=True, raise_errors=False
        )
        self._results: dict[Any, Any] = {}

    def slots(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise EngineError(f"The Dask cluster at {self._address} has no workers. Start some.")
        try:
            found = self._client.run(version, on_error="return")
        except Exception as error:  # noqa: BLE001  the worker cannot even load the function
            raise _without_playhead(self._address, str(error)) from None
        _check_versions(found)
        return sum(int(one["nthreads"]) for one in workers.values())

    def submit(self, jobs: Sequence[dict[str, Any]]) -> list[Any]:
        handles: list[Any] = self._client.map(run_on_worker, jobs, pure=False, retries=_RETRIES)
        self._finished.update(handles)
        return handles

    def wait(self, handles: Collection[Any]) -> list[Any]:
        batch = dict(self._finished.next_batch())
        self._results.update(batch)
        return list(batch)

    def result(self, handle: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._results.pop(handle)
        # Raises if the job failed: then `found` describes the exception.
        if handle.status != "finished":
            found = handle.result()
        handle.release()
        return found

    def close(self) -> None:
        self._client.close()


class RayEngine:
    """A Ray cluster: the one of this machine (`auto`), or one by its address."""

    def __init__(self, address: str) -> None:
        self._ray = _library("ray", "ray")
        self._address = address
        try:
            self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            raise _unreachable("ray", address, error) from None
        self._run = self._ray.remote(num_cpus=1, max_retries=_RETRIES)(run_on_worker)

    def slots(self) -> int:
        slots = int(self._ray.cluster_resources().get("CPU", 0))
        if not slots:
            raise EngineError(f"The Ray cluster at {self._address} has no workers. Start some.")
        ask = self._ray.remote(num_cpus=0, max_retries=0)(version)
        try:
            found = self._ray.get(ask.remote(), timeout=6 * _CONNECT_S)
        except Exception as error:  # noqa: BLE001  Ray wraps any exception of the worker
            raise _without_playhead(self._address, str(error)) from None
        _check_versions({"its first worker": found})
        return slots

    def submit(self, jobs: Sequence[dict[str, Any]]) -> list[Any]:
        return [self._run.remote(members) for members in jobs]

    def wait(self, handles: Collection[Any]) -> list[Any]:
        done, _ = self._ray.wait(list(handles), num_returns=1)
        return list(done)

    def result(self, handle: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._ray.get(handle)
        return found

    def close(self) -> None:
        self._ray.shutdown()


def _library(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(
            f"This needs the extra {extra!r}: pip install 'playhead[{extra}]'."
        ) from None


def _unreachable(engine: str, address: str, error: BaseException) -> EngineError:
    return EngineError(f"No {engine} cluster answers at {address} ({str(error)[:200]}).")


def _without_playhead(address: str, why: str) -> EngineError:
    line = why.strip().rpartition("\n")[2][:200]
    return EngineError(
        f"A worker at {address} cannot run Playhead ({line}). Install playhead=={__version__} on every worker."
    )


def _check_versions(found: dict[str, Any]) -> None:
    """Check that every worker has the same version of Playhead: verdicts of different versions cannot be compared."""
    for worker, answer in found.items():
        if answer != __version__:
            said = answer if isinstance(answer, str) else f"{type(answer).__name__}: {answer}"
            raise _without_playhead(worker, f"it answers {said}")
