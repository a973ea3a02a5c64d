"""How a database comes to be: alembic chains, SQL files, a function, and several of them in a row."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.reading import read_text
from harness_core.infrastructure.databases._connection import connect
from harness_core.infrastructure.databases._migrations import MigrationChain, chain_hash, upgrade


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """How a database comes to be.

    Args:
        key: changes whenever the result would.
        build: fills an empty database, given its URL.
    """

    key: str
    build: Callable[[str], Awaitable[None]]


def alembic_blueprint(*chains: MigrationChain) -> Blueprint:
    """A database with every one of ``chains`` applied in order, keyed by the hash of their files."""

    async def build(url: str) -> None:
        for chain in chains:
            await upgrade(url, chain)

    return Blueprint(key=chain_hash(*chains), build=build)


def sql_blueprint(path: Path) -> Blueprint:
    """What the statements of an SQL file make, keyed by its text; psql's own commands are none.

    Raises:
        BadInput: the file cannot be read.
    """
    text = read_text(path, expected="an SQL file")

    def run(url: str) -> None:
        try:
            with connect(url) as connection:
                connection.execute(text.encode())
        except psycopg.Error as error:
            raise HarnessError(
                f"run {path}",
                observed=str(error).strip().replace("\n", " / "),
                next_step="The server sees all its statements as one; try it with psql -1 -f",
            ) from error

    async def build(url: str) -> None:
        await blocking(run, url)

    return Blueprint(key=f"sql {hashlib.sha256(text.encode()).hexdigest()}", build=build)


def call_blueprint(function: Callable[[str], object]) -> Blueprint:
    """What a function makes, called with the URL of an empty database, in a thread.

    It is keyed by its name alone: its result is not kept longer than a run.

    Raises:
        BadInput: an async one, of whose loop nothing is known here.
    """
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"
    if inspect.iscoroutinefunction(function):
        raise BadInput(
            "database_template",
            found=f"async {name}",
            expected="a function that is not async",
            next_step="Give one that calls asyncio.run, or the like, itself",
        )

    async def build(url: str) -> None:
        try:
            await blocking(function, url)
        except HarnessError:
            raise
        except Exception as error:  # a function of the product: anything
            raise HarnessError(
                f"make a database by {name}", observed=f"{type(error).__name__}: {error}"
            ) from error

    return Blueprint(key=f"call {name}", build=build)


def all_of(*blueprints: Blueprint) -> Blueprint:
    """One after the other; without any an empty database."""

    async def build(url: str) -> None:
        for each in blueprints:
            await each.build(url)

    return Blueprint(key="\n".join(each.key for each in blueprints), build=build)
