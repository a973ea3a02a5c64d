"""The results of a campaign: a row per mutant in SQLite, so that it can be taken up and merged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._verdict import Result, Verdict
from harness_core.base.errors import BadInput

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS mutant (
    id TEXT PRIMARY KEY, file TEXT NOT NULL, function TEXT NOT NULL, operator TEXT NOT NULL,
    what TEXT NOT NULL, line INTEGER NOT NULL, diff_hash TEXT NOT NULL, diff TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS result (
    mutant TEXT PRIMARY KEY, verdict TEXT NOT NULL, detail TEXT NOT NULL, test TEXT NOT NULL,
    tests_run INTEGER NOT NULL, tests_covering INTEGER NOT NULL, duration_s REAL NOT NULL,
    ended_at TEXT NOT NULL
);
"""

#: What two files of one campaign have in common; other keys may differ.
_SAME: Final = ("suite", "fingerprint", "chosen")


class Store:
    """The file of one campaign, or of one shard of it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        try:
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise BadInput(path, found=str(error), expected="results of harness mutate") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def meta(self) -> dict[str, str]:
        """What the campaign is."""
        return dict(self._db.execute("SELECT key, value FROM meta"))

    def begin(self, meta: Mapping[str, str], *, resume: bool) -> None:
        """Begin a campaign, or take one up.

        Args:
            meta: what it is.
            resume: keep the results that are there.

        Raises:
            BadInput: those are of another campaign.
        """
        before = self.meta
        if resume and before:
            _check_same(before, meta, self.path)
            return
        with self._db:
            for table in ("meta", "mutant", "result"):
                self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
            self._db.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())

    def add(self, mutant: Mutant, diff: str, result: Result) -> None:
        """Add a result, in place of an earlier one of the same mutant."""
        named = (mutant.id, mutant.file, mutant.function, mutant.operator, mutant.what)
        place = (mutant.line, mutant.diff_hash, diff)
        self._db.execute(
            "INSERT OR REPLACE INTO mutant VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*named, *place)
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        became = (result.mutant, str(result.verdict), result.detail, result.test)
        counts = (result.tests_run, result.tests_covering, result.duration_s, now)
        self._db.execute(
            "INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*became, *counts)
        )

    def results(self) -> dict[str, Result]:
        """Every result, by mutant."""
        query = "SELECT mutant, verdict, detail, test, tests_run, tests_covering, duration_s FROM result"
        return {
            mutant: Result(
                mutant=mutant,
                verdict=Verdict(verdict),
                detail=detail,
                test=test,
                tests_run=run,
                tests_covering=covering,
                duration_s=duration_s,
            )
            for mutant, verdict, detail, test, run, covering, duration_s in self._db.execute(query)
        }

    def mutants(self) -> dict[str, dict[str, str | int]]:
        """What is known of every mutant that has a result, by id."""
        keys = ("id", "file", "function", "operator", "what", "line", "diff_hash", "diff")
        rows = self._db.execute(f"SELECT {', '.join(keys)} FROM mutant ORDER BY file, line")  # noqa: S608
        return {row[0]: dict(zip(keys, row, strict=True)) for row in rows}

    def take(self, other: Store) -> None:
        """Add the results of another shard; of two verdicts on one mutant a real one counts."""
        have = self.results()
        for mutant, result in other.results().items():
            if mutant in have and result.verdict is Verdict.NO_VERDICT:
                continue
            for table, key in (("mutant", "id"), ("result", "mutant")):
                query = f"SELECT * FROM {table} WHERE {key} = ?"  # noqa: S608 - constants
                for row in other._db.execute(query, (mutant,)):
                    marks = ", ".join("?" * len(row))
                    self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608


def merge_stores(paths: Sequence[Path], into: Path) -> Store:
    """Make one file of the shards of a campaign.

    Raises:
        BadInput: a file is missing, no such file, or of another campaign.
    """
    for path in paths:
        if not path.is_file():
            raise BadInput(path, found="no such file", expected="results of harness mutate")
    stores = [Store(path) for path in paths]
    try:
        first = stores[0].meta
        for store in stores[1:]:
            _check_same(first, store.meta, store.path)
        into.unlink(missing_ok=True)
        merged = Store(into)
        merged.begin(first | {"shard": _shards(store.meta for store in stores)}, resume=False)
        for store in stores:
            merged.take(store)
    finally:
        for store in stores:
            store.close()
    return merged


def _shards(metas: Iterable[Mapping[str, str]]) -> str:
    return ", ".join(sorted(shard for meta in metas if (shard := meta.get("shard", ""))))


def _check_same(one: Mapping[str, str], other: Mapping[str, str], path: Path) -> None:
    for key in _SAME:
        if one.get(key) != other.get(key):
            raise BadInput(
                path,
                key=key,
                found=one.get(key) if key == "fingerprint" else f"{one.get(key)} {other.get(key)}",
                expected="results of the same suite, code and choice",
                next_step="Without --resume a campaign begins anew",
            )
