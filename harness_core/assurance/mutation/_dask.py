"""Mutants on many machines: each one a task of a Dask cluster, run by whichever worker is free.

A task whose worker dies is given to another by the scheduler. Each worker needs the checkout, where
this one is or where ``HARNESS_MUTATE_ROOT`` says, and an environment with the suite's group in it.
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any, Final

import msgspec
import trio

from harness_core.assurance.mutation._job import Job
from harness_core.assurance.mutation._verdict import Result, Verdict
from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.machine import need_extra

#: A task that fails otherwise than by the death of its worker is tried so many times more.
_RETRIES: Final = 2
_CONNECT_S: Final = 30

#: How often the cluster is asked for its workers, and how long it may have none.
_LOOK_S: Final = 5.0
_WITHOUT_WORKERS_S: Final = 120.0

#: Beyond the job's own time limit, for the start of its process and the end of its product.
_AROUND_S: Final = 180.0


def run_task(job: bytes) -> bytes:
    """On a worker: run a job in a process of its own; its result.

    Raises:
        RuntimeError: the process ended without one; the cluster tries again.
    """
    command = [sys.executable, "-m", "harness_core.assurance.mutation._job"]
    limit_s = msgspec.json.decode(job, type=Job).limit_s + _AROUND_S
    with (
        TemporaryFile() as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdin is not None, "it was asked for"
        assert process.stdout is not None, "it was asked for"
        # Its input stays open as long as this worker lives: see `_job.py`.
        process.stdin.write(job + b"\n")
        process.stdin.flush()
        answers, _, _ = select.select([process.stdout], [], [], limit_s)
        answer = process.stdout.readline() if answers else b""
        if not answer:
            process.kill()
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()[-800:]
            raise RuntimeError(f"a mutant's process gave no result within {limit_s:.0f} s: {text}")
    return answer


async def run_on_dask(address: str, jobs: Sequence[Job]) -> AsyncIterator[Result]:
    """Run jobs on a cluster; each result as it comes.

    Args:
        address: of the scheduler, e.g. ``tcp://10.0.0.7:8786``.
        jobs: what to run.

    Raises:
        Unavailable: the extra is not installed, or there is no scheduler.
        HarnessError: the cluster gave up a task, or has no workers.
    """
    need_extra("dask", action="run mutants on a Dask cluster")
    import distributed

    library: Any = distributed

    def connect() -> Any:
        return library.Client(address, timeout=_CONNECT_S, set_as_default=False)

    try:
        client = await trio.to_thread.run_sync(connect)
    except OSError as error:
        raise Unavailable(
            f"reach the scheduler {address}",
            observed=str(error) or type(error).__name__,
            next_step="Start one: dask scheduler",
        ) from error
    try:
        futures = {
            client.submit(
                run_task,
                msgspec.json.encode(job),
                key=f"mutant-{job.mutant.id}",
                pure=False,
                retries=_RETRIES,
            ): job
            for job in jobs
        }
        waiting = set(futures)
        alone_since_s: float | None = None
        while waiting:
            done, workers = await trio.to_thread.run_sync(_next_ones, library, client, waiting)
            waiting -= done
            for future in done:
                yield _result(future, futures[future])
            if done or workers:
                alone_since_s = None
            elif alone_since_s is None:
                alone_since_s = trio.current_time()
            elif trio.current_time() - alone_since_s > _WITHOUT_WORKERS_S:
                raise HarnessError(
                    f"run {len(waiting)} mutants on the cluster {address}",
                    observed=f"it has had no worker for {_WITHOUT_WORKERS_S:.0f} s",
                    next_step=f"Start one: dask worker {address} --nthreads 1, with the suite's "
                    "environment and checkout; then go on with --resume",
                )
    finally:
        await trio.to_thread.run_sync(client.close)


def _next_ones(library: Any, client: Any, waiting: set[Any]) -> tuple[set[Any], int]:
    """Those of the futures that end within a moment, and how many workers there are."""
    done: set[Any] = set()
    with suppress(TimeoutError), client.as_current():
        done = library.wait(list(waiting), timeout=_LOOK_S, return_when="FIRST_COMPLETED").done
    return done, len(client.nthreads())


def _result(future: Any, job: Job) -> Result:
    if future.status == "finished":
        return msgspec.json.decode(future.result(), type=Result)
    error = future.exception()
    if not isinstance(error, Exception):
        raise HarnessError("run a mutant", observed=f"its task was {future.status}")
    return Result(
        mutant=job.mutant.id,
        verdict=Verdict.NO_VERDICT,
        detail=f"the cluster gave it up: {error}",
        tests_covering=job.covering,
    )
