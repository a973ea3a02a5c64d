"""The parts of the controller's HTTP side, and how endpoints are given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import asyncpg
from fastapi import Depends, Request

from workbench_contract.problem import Problem
from workbench_controller.catalogue.reader import Catalogue
from workbench_controller.langfuse_client import LangfuseClient
from workbench_controller.settings import Settings
from workbench_controller.storage import Store
from workbench_controller.temporal import Workflows
from workbench_controller.worker_client import WorkerClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All of them.

    Attributes:
        langfuse: none where no keys of it are set.
    """

    settings: Settings
    pool: asyncpg.Pool
    catalogue: Catalogue
    worker: WorkerClient
    workflows: Workflows
    store: Store
    langfuse: LangfuseClient | None


class Refused(Exception):
    """A request that is not carried out.

    Args:
        status: of the answer.
        detail: one sentence.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declared refusals, for the OpenAPI document; 401 and 422 are everywhere."""
    return {status: {"model": Problem} for status in statuses}


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Controller = Annotated[Parts, Depends(_parts)]
