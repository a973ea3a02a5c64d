"""What endpoints are given: the session of the request, and the parts of the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from workbench_contract.problem import Problem
from workbench_foundation.requests import SESSION
from workbench_worker.built_designs import Designs
from workbench_worker.callbacks import Callbacks
from workbench_worker.jobs import Jobs
from workbench_worker.picture_store import PictureStore
from workbench_worker.pieces import PiecesKept
from workbench_worker.pool import Pool
from workbench_worker.prices import Prices
from workbench_worker.sessions import ID, Session, Sessions
from workbench_worker.settings import Settings
from workbench_worker.simulations import Simulations
from workbench_worker.skills_repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a worker.

    Attributes:
        instance: made up when it started.
    """

    settings: Settings
    sessions: Sessions
    jobs: Jobs
    pool: Pool
    simulations: Simulations
    prices: Prices
    pieces: PiecesKept
    pictures: PictureStore
    designs: Designs
    callbacks: Callbacks
    skills: Repository
    instance: str


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declared refusals, for the OpenAPI document; 401 and 422 are everywhere."""
    return {status: {"model": Problem} for status in statuses}


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Worker = Annotated[Parts, Depends(_parts)]


def _session(worker: Worker, session_id: Annotated[str, Header(alias=SESSION, pattern=ID)]) -> Session:
    return worker.sessions.get(session_id)


CurrentSession = Annotated[Session, Depends(_session)]
