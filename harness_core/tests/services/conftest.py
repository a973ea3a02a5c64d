"""A run of its own for each test, and what a server of it has on this machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness_core.base.evidence import Evidence, open_evidence
from harness_core.front.skips import not_run
from harness_core.infrastructure.containers import LABEL_RUN, engine_client
from harness_core.infrastructure.databases import POSTGRES_URL_VARIABLE
from harness_core.infrastructure.engine import engine_reason, find_engine
from harness_core.infrastructure.services import (
    NATS_ADDRESS_VARIABLE,
    S3_URL_VARIABLE,
    TEMPORAL_ADDRESS_VARIABLE,
    VALKEY_URL_VARIABLE,
    open_nats,
    open_postgres,
    open_s3,
    open_temporal,
    open_valkey,
)
from harness_core.process import Run, command_line, memory_root, open_run, state_root


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """A directory for logs."""
    return open_evidence(tmp_path / "evidence")


@pytest.fixture
async def run(evidence: Evidence) -> AsyncIterator[Run]:
    """A run of its own for each test."""
    async with open_run(evidence=evidence) as opened:
        yield opened


Open = Callable[..., AbstractAsyncContextManager[Any]]

#: Kind → its opener, the argument that says where an external one is, the variable that has it.
OPENERS = {
    "postgres": (open_postgres, "url", POSTGRES_URL_VARIABLE),
    "s3": (open_s3, "url", S3_URL_VARIABLE),
    "temporal": (open_temporal, "address", TEMPORAL_ADDRESS_VARIABLE),
    "valkey": (open_valkey, "url", VALKEY_URL_VARIABLE),
    "nats": (open_nats, "address", NATS_ADDRESS_VARIABLE),
}


@pytest.fixture
def opened(run: Run, evidence: Evidence, provider: str) -> Open:
    """Opens a server of a kind by the chosen provider."""

    def opener(kind: str, *, evidence: Evidence = evidence, **more: object):
        make, key, variable = OPENERS[kind]
        place = {key: os.environ.get(variable)} if provider == "external" else {}
        return make(run, evidence=evidence, provider=provider, say=print, **place, **more)

    return opener


@pytest.fixture
def ours(request: pytest.FixtureRequest, opened: Open, provider: str) -> Open:
    """Opens a server of the module's ``KIND``, where it is ours to fill and to take away."""
    if provider == "external":
        not_run("options", "an external server is not ours to take away")
    return partial(opened, request.module.KIND)


@pytest.fixture
def leftovers(run: Run) -> Callable[[str], list[str]]:
    """What servers of one kind have here now: processes, directories, memory, containers."""
    # What killed runs have left is nobody's of this run, though its maker's number be given again.
    earlier = {row.split()[1] for row in _shared_memory()}

    def look(kind: str) -> list[str]:
        directories = [
            str(path)
            for root in (memory_root(), state_root())
            if root is not None
            for path in (root / run.id).glob(f"{kind}*")
        ]
        processes = [
            f"{entry.name} {command}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit()
            and run.id in (command := " ".join(command_line(int(entry.name))))
            and "_warden.py" not in command  # the run's own, there as long as the run
        ]
        # Made by a process of this run: a server of another one may have been killed just now.
        pids = {entry["pid"] for entry in run.ledger.entries() if entry["kind"] == "process"}
        segments = [
            f"segment {row.split()[1]}"
            for row in _shared_memory()
            if row.split()[1] not in earlier
            and int(row.split()[4]) in pids
            and row.split()[6] == "0"
        ]
        return [*directories, *processes, *segments, *_containers(run)]

    return look


def _shared_memory() -> list[str]:
    """Segments of System V, a line each."""
    return Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()[1:]


def _containers(run: Run) -> list[str]:
    """What the engine, if there is one, holds for this run, containers and volumes."""
    if engine_reason():
        return []
    label = {"label": f"{LABEL_RUN}={run.id}"}
    with engine_client(find_engine()) as client:
        containers = client.containers.list(all=True, filters=label, ignore_removed=True)
        volumes = client.volumes.list(filters={"dangling": True})
    return [each.name for each in (*containers, *volumes)]
