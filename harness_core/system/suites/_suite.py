"""``suites/<name>/suite.toml``: what one suite is called, needs and runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_core.base.errors import BadInput
from harness_core.system.suites._table import Table, read_toml

__all__ = [
    "RESERVED",
    "RESERVED_BENCHES",
    "Suite",
    "SuiteBench",
    "SuiteSession",
    "load_suite",
    "load_suites",
]

#: Sessions the noxfile has of its own; a test holds this set to the noxfile.
RESERVED = frozenset(
    {
        *("bench", "core", "core_containers", "coverage", "faults", "lint", "staging", "types"),
        "workflow",
    }
)
#: Benchmarks of the harness itself; a test holds this set to them and to the noxfile.
RESERVED_BENCHES = frozenset({"containers", "postgres"})

_NAME = r"[a-z][a-z0-9_]*"
_SESSION = r"[a-z][a-z0-9_-]*"
_WORD = r"[a-z][a-z0-9_-]*"
_OPENER = r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*:[a-z][a-z0-9_]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSession:
    """One nox session of a suite.

    Attributes:
        name: what ``nox -s`` takes.
        summary: its line in ``nox -l``.
        markers: a pytest ``-m`` expression, empty for all tests.
        tags: for ``nox -t``.
        default: whether bare ``nox`` runs it.
        paths: folders or files relative to the suite folder.
        options: what pytest is given besides, e.g. ``--services container``.
        group: dependency group instead of the suite's own; empty for that.
        own_tests: whether its tests are those that the reference system has of its own: they run
            where that is installed, by the pytest there.
    """

    name: str
    summary: str
    markers: str
    tags: tuple[str, ...]
    default: bool
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    group: str = ""
    own_tests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBench:
    """One benchmark of a suite: a script that ``nox -s bench`` runs.

    Attributes:
        name: what ``nox -s bench --`` takes.
        summary: what it measures, one line.
        script: the file.
    """

    name: str
    summary: str
    script: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite folder.

    Attributes:
        name: of the folder and in commands.
        summary: what it tests, one line.
        folder: where it lies.
        group: dependency group of the tree's pyproject.toml that its tests need.
        extras: extras of harness_core that its tests need.
        subject: the subject file of its reference system.
        reader: ``MODULE:FUNCTION`` of the suite that reads a subject file; empty for
            :func:`harness_core.system.subject.load_subject`.
        faults: the planted faults of that system: a file, or a folder of such files.
        environment: ``MODULE:FUNCTION`` of the suite that opens what it boots.
        adapter: the one file that may import the subject (for subjects that are libraries).
        library: the distribution of such a subject, installed beside the tests.
        may_import: modules of the subject that any file may import (contract schemas).
        patching: why its tests may patch; empty when they may not.
        optional_gates: what CI may do without, gate → why; any other closed gate is an error there.
        ledger: its requirements, by id; with one, its tests are held to the rules of
            ``harness_core.assurance.requirements`` for tests from outside.
        budget_usd: most that a run of it may spend on models; ``None`` for the usual.
        sessions: its nox sessions.
        benches: its benchmarks.
    """

    name: str
    summary: str
    folder: Path
    group: str
    extras: tuple[str, ...]
    subject: Path | None
    reader: str
    faults: Path | None
    environment: str
    adapter: Path | None
    library: Path | None
    may_import: tuple[str, ...]
    patching: str
    sessions: tuple[SuiteSession, ...]
    benches: tuple[SuiteBench, ...] = ()
    ledger: Path | None = None
    optional_gates: Mapping[str, str] = field(default_factory=dict)
    budget_usd: float | None = None


def load_suites(root: Path) -> tuple[Suite, ...]:
    """Read every suite of a tree, by name.

    Raises:
        BadInput: a suite.toml is malformed, names what the tree does not have, or two suites want
            the same name for a session or a benchmark.
    """
    suites = tuple(load_suite(path.parent) for path in sorted(root.glob("suites/*/suite.toml")))
    _check_against_pyproject(root, suites)
    owner: dict[tuple[str, str], Path] = {}
    for suite in suites:
        file = suite.folder / "suite.toml"
        names = [("session", session.name) for session in suite.sessions]
        names += [("bench", bench.name) for bench in suite.benches]
        for kind, name in names:
            other = owner.setdefault((kind, name), file)
            if other != file:
                raise BadInput(
                    file,
                    key=f"{kind}.name",
                    found=name,
                    expected=f"a name that {other} does not use",
                )
    return suites


def load_suite(folder: Path) -> Suite:
    """Read the suite in ``folder``.

    Raises:
        BadInput: its suite.toml is missing or malformed.
    """
    content = read_toml(folder / "suite.toml")
    table = content.table("suite")
    rows = content.tables("session")
    benches = content.tables("bench", default=())
    optional_gates = content.phrases("optional_gates")
    content.done()
    name = table.text("name", pattern=_NAME)
    if name != folder.name:
        raise table.bad("name", name, expected=f"the name of the folder, {folder.name!r}")
    suite = Suite(
        name=name,
        summary=table.text("summary"),
        folder=folder,
        group=table.text("group"),
        extras=table.texts("extras", default=()),
        subject=_file(table, "subject", folder),
        reader=table.text("reader", default="", pattern=_OPENER),
        faults=_path(table, "faults", folder),
        environment=table.text("environment", default="", pattern=_OPENER),
        adapter=_file(table, "adapter", folder),
        library=_library(table, folder),
        may_import=table.texts("may_import", default=()),
        patching=table.text("patching", default=""),
        sessions=tuple(_session(row, folder) for row in rows),
        benches=tuple(_bench(row, folder) for row in benches),
        ledger=_file(table, "ledger", folder),
        optional_gates=optional_gates,
        budget_usd=table.usd("budget_usd", default=None),
    )
    table.done()
    for row, session in zip(rows, suite.sessions, strict=True):
        if session.own_tests and suite.subject is None:
            raise row.bad("own_tests", found=True, expected="a suite with a subject to run them in")
    for kind, names in (
        ("session", [session.name for session in suite.sessions]),
        ("bench", [bench.name for bench in suite.benches]),
    ):
        for row_name in names:
            if names.count(row_name) > 1:
                raise content.bad(f"{kind}.name", row_name, expected="a name used once")
    return suite


def _bench(row: Table, folder: Path) -> SuiteBench:
    script = _file(row, "script", folder)
    if script is None:
        raise row.bad("script", None, expected=f"a file relative to {folder}")
    bench = SuiteBench(
        name=row.text("name", pattern=_SESSION), summary=row.text("summary"), script=script
    )
    row.done()
    if bench.name in RESERVED_BENCHES:
        raise row.bad("name", bench.name, expected="a name no benchmark of the harness has")
    return bench


def _session(row: Table, folder: Path) -> SuiteSession:
    session = SuiteSession(
        name=row.text("name", pattern=_SESSION),
        summary=row.text("summary"),
        markers=row.text("markers", default=""),
        tags=row.texts("tags", default=(), pattern=_WORD),
        default=row.flag("default", default=False),
        paths=row.texts("paths", default=(".",)),
        options=row.texts("options", default=()),
        group=row.text("group", default=""),
        own_tests=row.flag("own_tests", default=False),
    )
    row.done()
    if session.own_tests and session.group:
        raise row.bad(
            "group", session.group, expected="none: own tests run where the reference system is"
        )
    if session.name in RESERVED or session.name.startswith(("bench-", "faults-")):
        raise row.bad("name", session.name, expected="a name the noxfile does not use itself")
    for path in session.paths:
        if not (folder / path).exists():
            raise row.bad("paths", path, expected="a file or folder below the suite folder")
    return session


def _file(table: Table, key: str, folder: Path) -> Path | None:
    path = _path(table, key, folder)
    if path is not None and not path.is_file():
        raise table.bad(key, path.name, expected=f"a file relative to {folder}")
    return path


def _library(table: Table, folder: Path) -> Path | None:
    path = _path(table, "library", folder)
    if path is not None and not (path / "pyproject.toml").is_file():
        raise table.bad("library", path.name, expected="a folder with a pyproject.toml")
    return path


def _path(table: Table, key: str, folder: Path) -> Path | None:
    relative = table.text(key, default="")
    if not relative:
        return None
    path = folder / relative
    if not path.exists():
        raise table.bad(key, relative, expected=f"a file relative to {folder}")
    return path


def _check_against_pyproject(root: Path, suites: tuple[Suite, ...]) -> None:
    """The group and the extras of every suite exist.

    A tree that only uses an installed harness_core has no extras of its own, so extras are compared
    where the tree is the harness itself.
    """
    pyproject = read_toml(root / "pyproject.toml")
    groups = pyproject.optional("dependency-groups")
    project = pyproject.optional("project")
    extras = project.get("optional-dependencies", {})
    is_harness = project.get("name") == "staging-harness"
    for suite in suites:
        where = suite.folder / "suite.toml"
        wanted = [("suite.group", suite.group)]
        wanted += [(f"session.{row.name}.group", row.group) for row in suite.sessions if row.group]
        for key, group in wanted:
            if group not in groups:
                known = ", ".join(sorted(groups))
                raise BadInput(
                    where,
                    key=key,
                    found=group,
                    expected=f"a dependency group of pyproject.toml: {known}",
                )
        for extra in suite.extras:
            if is_harness and isinstance(extras, dict) and extra not in extras:
                known = ", ".join(sorted(extras))
                raise BadInput(
                    where,
                    key="suite.extras",
                    found=extra,
                    expected=f"an extra of pyproject.toml: {known}",
                )
