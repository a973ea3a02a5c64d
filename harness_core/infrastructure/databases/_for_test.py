"""A database for one test: fresh, dropped when the test passes, kept when it fails.

For a synchronous fixture, which is torn down after the outcome of the test is known:

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
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from harness_core.base.bridge import Loop
from harness_core.base.errors import Unavailable
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.databases._database import Database
from harness_core.infrastructure.databases._pool import DatabasePool
from harness_core.infrastructure.databases._server import Clone
from harness_core.infrastructure.services import find_postgres_binaries

D = TypeVar("D", bound=Database)

#: A clone holds what one test wrote; a dump of it takes some 100 ms.
_DUMP_S = 60.0


@contextmanager
def database_for_test(
    loop: Loop,
    pool: DatabasePool,
    *,
    evidence: Evidence,
    failed: Callable[[], bool],
    tell: Callable[[str], None],
    handle: Callable[[str], D] = Database,  # type: ignore[assignment]  # D, unless it is given
) -> Iterator[D]:
    """Hand out a clone of the pool's template.

    After a test that failed, the database is kept as long as its server lives (on an external
    server until it is dropped there), and its content is dumped into the evidence, which outlives
    both.

    Args:
        loop: the loop the pool lives on.
        pool: where the clone comes from.
        evidence: the test's own directory.
        failed: whether the test has failed; asked at the end.
        tell: gets the URL, without its password, and where the dump lies.
        handle: what the test gets, of the URL.

    Raises:
        AssertionError: the test passed and left connections open: who would hold the database of
            the next test.
    """
    clone = loop.run(pool.checkout)
    database = handle(clone.url)
    try:
        yield database
    finally:
        loop.run(database.close)
        if failed():
            shown = loop.run(lambda: pool.keep(clone))
            tell(f"database {shown}{_dump(clone, evidence)}")
        elif holders := loop.run(lambda: pool.drop(clone)):
            raise AssertionError(
                f"the test left {len(holders)} connection(s) to {clone.shown_url}: "
                f"{'; '.join(holders)}. Close what the test opened"
            )


def _dump(clone: Clone, evidence: Evidence) -> str:
    """Write the database as SQL into the evidence; returns where, or why not."""
    try:
        pg_dump = find_postgres_binaries().directory / "pg_dump"
    except Unavailable:
        pg_dump = Path(shutil.which("pg_dump") or "pg_dump")
    if not os.access(pg_dump, os.X_OK):
        return " (not dumped: no pg_dump on this machine)"
    where = {key: str(value) for key, value in conninfo_to_dict(clone.url).items()}
    # Not on the command line, where every user of the machine could read it.
    password = where.pop("password", "")
    done = subprocess.run(
        [pg_dump, "--no-owner", "--dbname", make_conninfo(**where)],
        env={"PATH": os.environ.get("PATH", os.defpath), "PGPASSWORD": password},
        capture_output=True,
        text=True,
        timeout=_DUMP_S,
        check=False,
    )
    if done.returncode != 0:
        return f" (not dumped: {done.stderr.strip()})"
    return f", dumped to {evidence.write_text(f'{clone.name}.sql', done.stdout)}"
