"""The controller's HTTP side put together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from workbench_contract.health import Health
from workbench_controller import (
    backups_api,
    batches_api,
    cots_api,
    entries_api,
    database,
    episodes_api,
    feedback_api,
    flows_api,
    handovers_api,
    jobs_api,
    metrics_api,
    readiness_api,
    skills_api,
)
from workbench_controller.catalogue.reader import Catalogue
from workbench_controller.ingest import pull_for_ever
from workbench_controller.langfuse_client import LangfuseClient
from workbench_controller.langfuse_outbox import tell_for_ever
from workbench_controller.parts import Parts, Refused
from workbench_controller.settings import Settings
from workbench_controller.storage import Store
from workbench_controller.temporal import Workflows, connect
from workbench_controller.watch import Watch
from workbench_controller.watched import Backups, Episodes, Flows
from workbench_controller.worker_client import WorkerClient
from workbench_foundation import log
from workbench_foundation.errors import describe
from workbench_foundation.health import health
from workbench_foundation.keys import App, KeyRequired
from workbench_foundation.openapi import describe_app
from workbench_foundation.requests import Logged


async def make_app(settings: Settings) -> App:
    """The controller, ready to be served; nothing it depends on need be there yet."""
    parts = Parts(
        settings=settings,
        pool=await database.open_pool(settings.database_url, query_s=settings.query_s),
        catalogue=Catalogue(await database.open_pool(settings.catalogue_url, query_s=settings.query_s)),
        worker=WorkerClient(
            settings.worker_url, key=settings.api_key, timeout_s=settings.worker_timeout_s
        ),
        workflows=Workflows(await connect(settings.temporal, lazy=True), settings.temporal),
        store=Store(settings.store),
        langfuse=LangfuseClient(settings.langfuse) if settings.langfuse else None,
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        kinds = (
            Episodes(parts.pool, parts.workflows),
            Flows(parts.pool),
            Backups(parts.pool, parts.store),
        )
        watches = [
            Watch(kind, parts.pool, parts.workflows, settings.temporal) for kind in kinds
        ]
        tasks = [
            asyncio.create_task(pull_for_ever(parts.pool, parts.worker, pull_s=settings.pull_s)),
            *(
                asyncio.create_task(watch.look_for_ever(watch_s=settings.watch_s))
                for watch in watches
            ),
        ]
        if parts.langfuse and settings.langfuse:
            telling = tell_for_ever(parts.pool, parts.langfuse, pause_s=settings.langfuse.pause_s)
            tasks.append(asyncio.create_task(telling))
        log.info("started")
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if parts.langfuse:
            await asyncio.to_thread(parts.langfuse.close)
        await parts.worker.aclose()
        parts.catalogue.close()
        parts.pool.terminate()

    app = FastAPI(title="workbench controller", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.parts = parts
    app.include_router(backups_api.router)
    app.include_router(batches_api.router)
    app.include_router(episodes_api.router)
    app.include_router(entries_api.router)
    app.include_router(feedback_api.router)
    app.include_router(cots_api.router)
    app.include_router(handovers_api.router)
    app.include_router(flows_api.router)
    app.include_router(jobs_api.router)
    app.include_router(readiness_api.router)
    app.include_router(metrics_api.router)
    app.include_router(skills_api.router)

    @app.get("/health", responses={503: {"model": Health}})
    async def get_health() -> Response:
        timeout_s = settings.health_timeout_s
        probes = {
            "minio": parts.store.answers,
            "postgres": lambda: parts.pool.fetchval("SELECT 1"),
            "temporal": parts.workflows.answers,
            "worker": lambda: parts.worker.answers(timeout_s=timeout_s),
        }
        status, body = await health(probes, timeout_s=timeout_s)
        return JSONResponse(body.model_dump(mode="json"), status_code=status)

    @app.exception_handler(Refused)
    async def refuse(_: Request, refused: Refused) -> JSONResponse:
        return JSONResponse({"detail": refused.detail}, status_code=refused.status)

    async def no_database(_: Request, error: Exception) -> JSONResponse:
        log.error("database_away", reason=describe(error))
        detail = f"cannot reach the database: {describe(error)}. Ask again when it serves"
        return JSONResponse({"detail": detail}, status_code=503)

    for away in database.AWAY:
        app.add_exception_handler(away, no_database)
    describe_app(app, health=Health, away="The database is away")
    return Logged(KeyRequired(app, key=settings.api_key))
