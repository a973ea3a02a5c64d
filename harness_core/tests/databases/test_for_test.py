"""A database per test, seen from a pytest run of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = """
import psycopg
import pytest

from harness_core.infrastructure.databases import Blueprint, Database, database_for_test, open_pool
from harness_core.front.pytest_plugin import add_kept, has_failed
from harness_core.infrastructure.services import open_postgres

LEFT_OPEN = []


async def build(url):
    async with Database(url) as database:
        await database.execute("CREATE TABLE things (name text)")


@pytest.fixture(scope="session")
def pool(harness_loop, harness_run, run_evidence):
    with harness_loop.hold(open_postgres(harness_run, evidence=run_evidence)) as postgres:
        blueprint = Blueprint(key="things", build=build)
        manager = open_pool(postgres.url, blueprint, run_id=harness_run.id, in_memory=True)
        with harness_loop.hold(manager) as pool:
            yield pool


@pytest.fixture
def database(request, harness_loop, pool, evidence):
    with database_for_test(
        harness_loop,
        pool,
        evidence=evidence,
        failed=lambda: has_failed(request.node),
        tell=lambda text: add_kept(request.node, text),
    ) as database:
        yield database


async def test_passes(database):
    await database.execute("INSERT INTO things VALUES ('passed')")
    await database.expect_count("things", count=1)


async def test_fails(database):
    await database.execute("INSERT INTO things VALUES ('left by the failed test')")
    await database.expect_count("things", count=2, within_s=0)


async def test_leaves_a_connection(database):
    LEFT_OPEN.append(psycopg.connect(database.url))
    await database.expect_count("things", count=0)


def test_the_run_knows_what_it_kept(pool):
    assert len(pool._kept) == 1
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a run of the project printed, and its evidence directory."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "test_project.py").write_text(PROJECT, encoding="utf-8")
    (directory / "pytest.ini").write_text("[pytest]\ntrio_mode = true\n", encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=directory,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return finished.stdout + finished.stderr, directory / ".evidence"


def test_a_failed_test_keeps_its_database_and_says_where(output: tuple[str, Path]) -> None:
    """The URL is printed without its password, and the rows are in the evidence."""
    text, evidence = output
    kept = re.findall(r"test_project.py::(\w+): database (\S+), dumped to (\S+)", text)

    assert ["test_fails"] == [test for test, _, _ in kept], text
    assert re.fullmatch(r"postgresql://postgres:\*\*\*@127\.0\.0\.1:\d+/\S+", kept[0][1])
    dump = Path(kept[0][2])

    assert evidence in dump.parents
    assert "left by the failed test" in dump.read_text(encoding="utf-8")


def test_a_connection_left_open_fails_the_test_that_passed(output: tuple[str, Path]) -> None:
    """What would hold the next test's database is reported with who holds it."""
    text, _ = output

    assert "the test left 1 connection(s) to postgresql://postgres:***@" in text
    assert re.search(r"1 failed, 3 passed, 1 error", text), text
