"""What each test executes of the product, and how long it takes: measured once for many mutants."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._unheard import Unheard
from harness_core.base.errors import BadInput

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE test (
    id TEXT PRIMARY KEY, seconds REAL NOT NULL, green INTEGER NOT NULL, shaky INTEGER NOT NULL,
    starts INTEGER NOT NULL
);
CREATE TABLE arc (
    process TEXT NOT NULL, test TEXT NOT NULL, boot INTEGER NOT NULL, file TEXT NOT NULL,
    source INTEGER NOT NULL, line INTEGER NOT NULL,
    PRIMARY KEY (process, test, boot, file, source, line)
) WITHOUT ROWID;
CREATE TABLE unheard (argv TEXT NOT NULL, processes INTEGER NOT NULL, why TEXT NOT NULL);
CREATE INDEX arc_of_line ON arc (file, line);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A test without a mutant.

    Attributes:
        seconds: that it took.
        green: whether it passed in the control run.
        shaky: whether it passed then and not when coverage was measured.
        starts: whether its body starts the product and asserts that it came up.
    """

    seconds: float
    green: bool
    shaky: bool = False
    starts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """The tests that a mutant is run by, the most telling first.

    Attributes:
        tests: their ids.
        seconds: how long all of them take without a mutant.
    """

    tests: tuple[str, ...]
    seconds: float


class CoverageMap:
    """The measured map of one suite; a file of SQLite."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def fingerprint(self) -> str:
        """Of the product and the tests that it was measured with."""
        row = self._db.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
        return str(row[0]) if row else ""

    @property
    def seconds(self) -> dict[str, float]:
        """How long each test takes that is green without a mutant."""
        return dict(self._db.execute("SELECT id, seconds FROM test WHERE green"))

    @property
    def red(self) -> list[str]:
        """Tests that failed without a mutant: they can prove nothing."""
        return [row[0] for row in self._db.execute("SELECT id FROM test WHERE NOT green")]

    @property
    def shaky(self) -> frozenset[str]:
        """Tests that were green and red without a mutant."""
        return frozenset(row[0] for row in self._db.execute("SELECT id FROM test WHERE shaky"))

    @property
    def unheard(self) -> list[Unheard]:
        """Processes of the product that ran without the agent: what they execute is not in here."""
        query = "SELECT argv, processes, why FROM unheard ORDER BY rowid"
        return [Unheard(*row) for row in self._db.execute(query)]

    @property
    def starting(self) -> tuple[str, ...]:
        """Tests whose body starts the product, the fastest first."""
        query = "SELECT id FROM test WHERE starts AND green ORDER BY seconds"
        return tuple(row[0] for row in self._db.execute(query))

    def covering(self, mutant: Mutant) -> Covering:
        """The tests that a mutant may be noticed by, the fastest of each kind first.

        First those that executed one of its lines; then, for lines that a process ran before the
        first of its tests, those that used that process later. Of what runs on import, every test
        that ran anything of its file.

        A line that was only ever left was executed too: Python 3.11 does not tell of the way into
        those that a coroutine goes on with after what it awaited has dealt with an exception.
        """
        lines = (mutant.file, mutant.first, mutant.last)
        if mutant.at_import:
            tests = self._tests("file = ? AND test <> '' AND NOT boot", lines[:1])
            tests |= self._tests("file = ? AND test <> ''", lines[:1])
            direct, later = tests if self._executed(mutant) else set(), set[str]()
        else:
            direct = self._tests("file = ? AND line BETWEEN ? AND ? AND test <> ''", lines)
            direct = direct or self._tests(
                "file = ? AND source BETWEEN ? AND ? AND test <> ''", lines
            )
            of_boot = "file = ? AND line BETWEEN ? AND ? AND boot"
            later = self._tests(
                f"process IN (SELECT process FROM arc WHERE {of_boot}) AND test <> ''",  # noqa: S608 - a constant
                lines,
            )
        seconds = self.seconds
        ordered = [
            *sorted((test for test in direct if test in seconds), key=seconds.__getitem__),
            *sorted((test for test in later - direct if test in seconds), key=seconds.__getitem__),
        ]
        return Covering(tests=tuple(ordered), seconds=sum(seconds[test] for test in ordered))

    def _executed(self, mutant: Mutant) -> bool:
        found = self._db.execute(
            "SELECT 1 FROM arc WHERE file = ? AND line BETWEEN ? AND ? LIMIT 1",
            (mutant.file, mutant.first, mutant.last),
        )
        return found.fetchone() is not None

    def _tests(self, where: str, values: Iterable[object]) -> set[str]:
        query = f"SELECT DISTINCT test FROM arc WHERE {where}"  # noqa: S608 - constants of this file
        return {row[0] for row in self._db.execute(query, tuple(values))}

    def arcs_of(self, test: str | None = None) -> dict[str, set[tuple[int, int]]]:
        """Every arc that was executed, by file; of one test, or of all together."""
        query = "SELECT DISTINCT file, source, line FROM arc"
        rows = (
            self._db.execute(query)
            if test is None
            else self._db.execute(f"{query} WHERE test = ?", (test,))
        )
        arcs: dict[str, set[tuple[int, int]]] = {}
        for file, source, line in rows:
            arcs.setdefault(file, set()).add((source, line))
        return arcs

    def lines_of_tests(self) -> dict[str, int]:
        """How many lines of the product each test executed."""
        query = (
            "SELECT test, count(*) FROM (SELECT DISTINCT test, file, line FROM arc WHERE line > 0)"
            " WHERE test <> '' GROUP BY test"
        )
        return dict(self._db.execute(query))


def write_map(
    path: Path,
    *,
    product: Product,
    fingerprint: str,
    messages: Iterable[Mapping[str, Any]],
    tests: Mapping[str, Measured],
    unheard: Iterable[Unheard] = (),
) -> CoverageMap:
    """Make a map from what agents and pytest said.

    Args:
        path: where; what is there is replaced.
        product: whose files count.
        fingerprint: what it was measured with.
        messages: those of the agents.
        tests: every test of the sessions.
        unheard: processes that no message tells of.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(partial)) as db, db:
        db.executescript(_TABLES)
        db.execute("INSERT INTO meta VALUES ('fingerprint', ?)", (fingerprint,))
        db.executemany(
            "INSERT INTO test VALUES (?, ?, ?, ?, ?)",
            (
                (test, each.seconds, each.green, each.shaky, each.starts)
                for test, each in tests.items()
            ),
        )
        db.executemany("INSERT INTO unheard VALUES (?, ?, ?)", unheard)
        db.executemany(
            "INSERT OR IGNORE INTO arc VALUES (?, ?, ?, ?, ?, ?)", _rows(product, messages)
        )
    partial.replace(path)
    return CoverageMap(path)


def open_map(path: Path, *, fingerprint: str) -> CoverageMap | None:
    """The map of a file; ``None`` when there is none, or it was measured with other code.

    Raises:
        BadInput: it is no such file.
    """
    if not path.exists():
        return None
    found = CoverageMap(path)
    try:
        if found.fingerprint == fingerprint:
            return found
    except sqlite3.DatabaseError as error:
        raise BadInput(
            path,
            found=str(error),
            expected="a coverage map (SQLite)",
            next_step="Delete it: it is measured anew",
        ) from error
    found.close()
    return None


def _rows(
    product: Product, messages: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str, bool, str, int, int]]:
    names = {str(path): name for name, path in product.files.items()}
    for message in messages:
        for file, arcs in message.get("arcs", {}).items():
            name = names.get(file) or names.get(str(Path(file).resolve()))
            if name is not None:
                for source, line in arcs:
                    yield (
                        message["process"],
                        message["context"],
                        message["boot"],
                        name,
                        source,
                        line,
                    )
