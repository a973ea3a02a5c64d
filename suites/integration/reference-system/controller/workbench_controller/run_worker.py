"""``workbench-controller-worker``: the process that runs episodes' workflows."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

# Not in a function: what an operation answers is looked up by name, for the OpenAPI document.
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from workbench_foundation.keys import App
from workbench_foundation.serving import run_service

#: Between two attempts to reach a Temporal that is not there yet.
_PAUSE_S = 0.2


async def _make() -> App:
    from workbench_contract.health import Health
    from workbench_controller import database
    from workbench_controller.catalogue.reader import Catalogue
    from workbench_controller.settings import Settings, read_settings
    from workbench_controller.storage import Store
    from workbench_controller.temporal import TemporalAway, Workflows, connect
    from workbench_controller.worker_client import WorkerClient
    from workbench_foundation import log
    from workbench_foundation.errors import describe
    from workbench_foundation.health import health
    from workbench_foundation.keys import KeyRequired
    from workbench_foundation.openapi import describe_app

    settings: Settings = read_settings()
    pool = await database.open_pool(settings.database_url, query_s=settings.query_s)
    catalogue = Catalogue(await database.open_pool(settings.catalogue_url, query_s=settings.query_s))
    worker = WorkerClient(
        settings.worker_url, key=settings.api_key, timeout_s=settings.worker_timeout_s
    )
    store = Store(settings.store)
    workflows = Workflows(await connect(settings.temporal, lazy=True), settings.temporal)
    polling = False

    async def work() -> None:
        """Poll Temporal for ever; a lost connection is made again."""
        nonlocal polling
        from datetime import timedelta

        from temporalio.worker import Worker

        from workbench_controller.activities import EpisodeActivities
        from workbench_controller.asset_activities import AssetActivities
        from workbench_controller.attempts import Attempts
        from workbench_controller.backup_activities import BackupActivities
        from workbench_controller.backup_workflow import BackupWorkflow
        from workbench_controller.batch_activities import BatchActivities
        from workbench_controller.batch_workflow import BatchWorkflow
        from workbench_controller.flow_activities import FlowActivities
        from workbench_controller.flow_workflow import FlowWorkflow
        from workbench_controller.workflow import EpisodeWorkflow

        activities = [
            *EpisodeActivities(
                settings=settings, pool=pool, catalogue=catalogue, worker=worker
            ).all(),
            *AssetActivities(
                pool=pool, worker=worker, store=store, attempts=settings.store.attempts
            ).all(),
            *FlowActivities(pool=pool, worker=worker).all(),
            *BatchActivities(pool=pool).all(),
            *BackupActivities(settings=settings, pool=pool, store=store).all(),
        ]
        while True:
            try:
                client = await connect(settings.temporal, lazy=False)
                running = Worker(
                    client,
                    task_queue=settings.temporal.task_queue,
                    workflows=[EpisodeWorkflow, FlowWorkflow, BatchWorkflow, BackupWorkflow],
                    activities=activities,
                    interceptors=[Attempts(pool=pool, write_s=settings.heartbeat_s / 2)],
                    # Cancellations arrive with the answer to a heartbeat.
                    max_heartbeat_throttle_interval=timedelta(milliseconds=300),
                    default_heartbeat_throttle_interval=timedelta(milliseconds=300),
                    graceful_shutdown_timeout=timedelta(seconds=1),
                    # A process that has died is waited for as long as one of its activities.
                    sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.heartbeat_s),
                )
                polling = True
                log.info("polling", task_queue=settings.temporal.task_queue)
                await running.run()
            # The edge of a task that must not end: Temporal's trouble is logged, and it is tried again.
            except Exception as error:
                if polling:
                    log.warning("polling_lost", reason=describe(error))
            polling = False
            await asyncio.sleep(_PAUSE_S)

    async def polls() -> None:
        if not polling:
            raise TemporalAway("cannot poll Temporal: there is no connection yet")
        await workflows.answers()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        working = asyncio.create_task(work())
        yield
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await worker.aclose()
        catalogue.close()
        pool.terminate()

    app = FastAPI(
        title="workbench controller-worker", lifespan=lifespan, docs_url=None, redoc_url=None
    )

    @app.get("/health", responses={503: {"model": Health}})
    async def get_health() -> Response:
        timeout_s = settings.health_timeout_s
        probes = {
            "minio": store.answers,
            "postgres": lambda: pool.fetchval("SELECT 1"),
            "temporal": polls,
            "worker": lambda: worker.answers(timeout_s=timeout_s),
        }
        status, body = await health(probes, timeout_s=timeout_s)
        return JSONResponse(body.model_dump(mode="json"), status_code=status)

    describe_app(app, health=Health)
    return KeyRequired(app, key=settings.api_key)


def main() -> int:
    """Work until SIGTERM; the exit status."""
    return run_service("controller-worker", _make)


if __name__ == "__main__":
    sys.exit(main())
