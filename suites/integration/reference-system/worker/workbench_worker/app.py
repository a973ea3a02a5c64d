"""The worker's routes put together."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from workbench_contract.health import Health
from workbench_foundation import log
from workbench_foundation.health import health
from workbench_foundation.keys import App, KeyRequired
from workbench_foundation.openapi import describe_app
from workbench_foundation.requests import Logged
from workbench_worker import (
    benchmark_api,
    costs,
    design_api,
    export_api,
    fidelity_api,
    files_api,
    handover_api,
    jobs_api,
    pricing_api,
    render_api,
    runtime_api,
    skills_api,
    validation_api,
)
from workbench_worker.asked import Parts
from workbench_worker.built_designs import Designs
from workbench_worker.callbacks import Callbacks
from workbench_worker.execution import run_command
from workbench_worker.jobs import Jobs
from workbench_worker.leases import recover
from workbench_worker.picture_store import PictureStore
from workbench_worker.pieces import PiecesKept
from workbench_worker.pool import Pool
from workbench_worker.prices import Prices
from workbench_worker.refusal import Refused
from workbench_worker.sessions import VERSIONS, Sessions
from workbench_worker.settings import Settings
from workbench_worker.simulations import Simulations
from workbench_worker.skills_repository import Repository

#: A session of the worker itself, to see whether there are walls.
_PROBE = "worker-walls-probe"


async def make_app(settings: Settings) -> App:
    """The worker, ready to be served."""
    settings.data.mkdir(parents=True, exist_ok=True)
    # A shop that cannot be read is no shop.
    costs.shop()
    pictures = PictureStore(settings.data / "pictures")
    sessions = Sessions(settings.data)
    callbacks = Callbacks(
        settings.data / "callbacks",
        url=settings.controller_url,
        key=settings.api_key,
        secret=settings.callback_key,
        pause_s=settings.callback_pause_s,
        timeout_s=settings.catalogue_timeout_s,
    )
    jobs_api.recover(sessions, callbacks)
    parts = Parts(
        settings=settings,
        sessions=sessions,
        jobs=Jobs(recover(sessions)),
        pool=Pool(settings),
        simulations=Simulations(),
        prices=Prices(
            settings.controller_url,
            key=settings.api_key,
            timeout_s=settings.catalogue_timeout_s,
        ),
        pieces=PiecesKept(settings.data / "pieces"),
        pictures=pictures,
        designs=Designs(pictures),
        callbacks=callbacks,
        skills=Repository(
            url=settings.skills_url,
            folder=settings.data / VERSIONS,
            timeout_s=settings.skills_timeout_s,
        ),
        instance=secrets.token_hex(8),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await parts.pool.start()
        sending = asyncio.create_task(callbacks.send_for_ever())
        log.info("started", instance=parts.instance, data=str(settings.data))
        yield
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await callbacks.aclose()
        await parts.pool.stop()
        await parts.prices.aclose()

    app = FastAPI(title="workbench worker", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.parts = parts
    for module in (
        files_api,
        runtime_api,
        benchmark_api,
        validation_api,
        design_api,
        export_api,
        fidelity_api,
        handover_api,
        jobs_api,
        pricing_api,
        render_api,
        skills_api,
    ):
        app.include_router(module.router)
    walls = _Walls(parts)

    @app.get("/health", responses={503: {"model": Health}})
    async def get_health() -> Response:
        probes = {
            "storage": lambda: asyncio.to_thread(parts.sessions.writable),
            "walls": walls.stand,
            "pool": lambda: asyncio.to_thread(parts.pool.answers),
        }
        status, body = await health(probes, timeout_s=settings.health_timeout_s)
        return JSONResponse(body.model_dump(mode="json"), status_code=status)

    @app.exception_handler(Refused)
    async def refuse(_: Request, refused: Refused) -> JSONResponse:
        return JSONResponse({"detail": refused.detail}, status_code=refused.status)

    describe_app(app, health=Health)
    return Logged(KeyRequired(app, key=settings.api_key))


class _Walls:
    """Whether sessions can be walled off here; once they could, they can."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stand = False

    async def stand(self) -> None:
        """Raises Refused when they cannot."""
        if self._stand:
            return
        session = self._parts.sessions.get(_PROBE)
        async with self._parts.jobs.job(session, None) as job:
            await run_command(job, ["true"], timeout_s=10, settings=self._parts.settings)
        self._stand = True
