"""PostgreSQL in a container, ours beside testcontainers' own; a container per test beside a clone."""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from benchmarks._postgres import filled, variable, write_chain
from benchmarks._table import Table
from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence, open_evidence
from harness_core.infrastructure.containers import build_images, image_tag
from harness_core.infrastructure.databases import (
    MigrationChain,
    alembic_blueprint,
    open_pool,
    upgrade,
)
from harness_core.infrastructure.engine import find_engine
from harness_core.infrastructure.services import open_postgres
from harness_core.process import open_run

if TYPE_CHECKING:
    from harness_core.process import Run

__all__ = ["bench_containers"]

_IMAGE_VARIABLE: Final = "HARNESS_POSTGRES_IMAGE"

#: By name: only harness_core.infrastructure.containers imports the library, and here it is a contender.
_PEER_MODULE: Final = "testcontainers.community.postgres"

_OURS_PREPARED = "ours, prepared image"
_OURS_PLAIN = "ours, plain image"
_PEER_PLAIN = "testcontainers PostgresContainer, plain image"
_PEER_PREPARED = "testcontainers PostgresContainer, prepared image"

_CONTAINER = "container per test, 20 revisions"
_CLONE = "clone per test, warm pool"
_CLONE_COLD = "clone per test, pool empty"


def bench_containers(*, rounds: int) -> tuple[Table, ...]:
    """Measure both subjects in one run; the images are built first when they are missing.

    The plain image initialises its data directory when it starts, as the public one does. The peer
    runs with its defaults, but for its reaper where the reaper's image cannot be had.
    """
    ready = Table(
        "PostgreSQL in a container: from nothing to a server that answers",
        ours=_OURS_PREPARED,
        contenders=(_OURS_PREPARED, _OURS_PLAIN, _PEER_PLAIN, _PEER_PREPARED),
    )
    per_test = Table(
        "a migrated database per test, with PostgreSQL in a container",
        ours=_CLONE,
        contenders=(_CLONE, _CLONE_COLD, _CONTAINER),
    )
    build_images(find_engine(), names=("postgres-baked",), say=_say)
    with tempfile.TemporaryDirectory() as scratch:
        trio.run(_bench, ready, per_test, Path(scratch), rounds)
    return ready, per_test


async def _bench(ready: Table, per_test: Table, scratch: Path, rounds: int) -> None:
    evidence = open_evidence(scratch / "evidence")
    plain, prepared = image_tag("postgres"), image_tag("postgres-baked")
    async with open_run(evidence=evidence) as run:
        await _ours(run, evidence, Table("warm-up", ours="x", contenders=("x",)), "x", prepared)
        for number in range(rounds):
            _say(f"round {number + 1} of {rounds}: containers")
            await _ours(run, evidence, ready, _OURS_PREPARED, prepared)
            await _ours(run, evidence, ready, _OURS_PLAIN, plain)
            await blocking(_peer, ready, _PEER_PLAIN, plain, {})
            # The prepared image has the superuser of its data directory.
            own = {"username": "postgres", "dbname": "postgres"}
            await blocking(_peer, ready, _PEER_PREPARED, prepared, own)
        await _per_test(run, evidence, per_test, scratch / "chain", rounds)


async def _ours(run: Run, evidence: Evidence, table: Table, name: str, image: str) -> None:
    with variable(_IMAGE_VARIABLE, image):
        opener = open_postgres(run, evidence=evidence, provider="container")
        try:
            with table.measure(name):
                await opener.__aenter__()
        except HarnessError as error:
            table.fail(name, str(error))
        else:
            await opener.__aexit__(None, None, None)


def _peer(table: Table, name: str, image: str, arguments: dict[str, str]) -> None:
    module: Any = importlib.import_module(_PEER_MODULE)
    container = module.PostgresContainer(image, **arguments)
    began = time.perf_counter()
    try:
        container.start()
        table.add(name, time.perf_counter() - began)
    except Exception as error:  # noqa: BLE001 - a process edge: recorded in the table
        table.fail(name, str(error) or type(error).__name__)
    finally:
        container.stop()


async def _per_test(
    run: Run, evidence: Evidence, table: Table, directory: Path, rounds: int
) -> None:
    write_chain(directory)
    chain = MigrationChain(name="bench", directory=directory)
    async with open_postgres(run, evidence=evidence, provider="container") as postgres:
        blueprint = alembic_blueprint(chain)
        async with (
            open_pool(postgres.url, blueprint, run_id=run.id, in_memory=False, warm=1) as warm,
            open_pool(postgres.url, blueprint, run_id=run.id, in_memory=False, warm=0) as cold,
        ):
            for number in range(rounds):
                _say(f"round {number + 1} of {rounds}: databases")
                await filled(warm, warm=1)
                with table.measure(_CLONE):
                    clone = await warm.checkout()
                await filled(warm, warm=1)
                await warm.drop(clone)
                with table.measure(_CLONE_COLD):
                    clone = await cold.checkout()
                await cold.drop(clone)
                opener = open_postgres(run, evidence=evidence, provider="container")
                with table.measure(_CONTAINER):
                    server = await opener.__aenter__()
                    await upgrade(server.url(), chain)
                await opener.__aexit__(None, None, None)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
