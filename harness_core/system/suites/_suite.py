"""``suites/<name>/suite.toml``: what one suite is called, needs and runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, field, structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import (
    Misfit,
    Table,
    Text,
    Texts,
    check_distinct,
    like,
    read_toml,
)
from harness_core.system.suites._capability import TEST, Capability
from harness_core.system.suites._pyproject import read_pyproject

__all__ = [
    "RESERVED",
    "RESERVED_BENCHES",
    "Suite",
    "SuiteBench",
    "SuiteFile",
    "SuiteSession",
    "load_suite",
    "load_suites",
]

#: Sessions the noxfile has of its own; a test holds this set to the noxfile.
RESERVED = frozenset(
    {
        *("bench", "core", "core_containers", "core_rest", "coverage", "docs", "examples"),
        *(
            "explore",
            "faults",
            "lint",
            "mutate",
            "screenshots",
            "staging",
            "survey",
            "types",
            "workflow",
        ),
    }
)
#: Benchmarks of the harness itself; a test holds this set to them and to the noxfile.
RESERVED_BENCHES = frozenset({"containers", "imports", "postgres", "strangers"})

_Name = Annotated[str, like(r"[a-z][a-z0-9_]*")]
_Word = Annotated[str, like(r"[a-z][a-z0-9_-]*")]
_Opener = Annotated[str, like(r"([a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*:[a-z][a-z0-9_]*)?")]
_Type = Annotated[str, like(r"([a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*:[A-Z]\w*)?")]
_Usd = Annotated[float, Meta(ge=0, le=sys.float_info.max, description="USD, from 0 on")]

_A_FILE: Final = "a file relative to the folder of the suite"


class SuiteSession(Table, frozen=True):
    """One nox session of a suite.

    Attributes:
        name: what ``nox -s`` takes; unique over all suites, and none that the noxfile uses itself.
        summary: its line in ``nox -l``.
        markers: a pytest ``-m`` expression, empty for all tests; an ``-m`` after ``--`` narrows it.
        tags: for ``nox -t``. ``fast``, ``docker`` and ``llm`` mean the same in every suite; ``nightly``
            and ``weekly`` say when CI runs it beside what is default; ``measured`` counts it for
            coverage though it is not default.
        default: whether bare ``nox`` runs it.
        paths: folders or files relative to the suite folder.
        options: what pytest is given besides, e.g. ``["--services", "container"]``.
        group: dependency group instead of the suite's own, for what no other session needs.
        own_tests: whether its tests are those that the reference system has of its own: they run
            where that is installed, by the pytest there.
    """

    name: _Word
    summary: Text
    markers: str = ""
    tags: tuple[_Word, ...] = ()
    default: bool = False
    paths: Texts = (".",)
    options: Texts = ()
    group: str = ""
    own_tests: bool = False

    def __post_init__(self) -> None:
        check_distinct(self, "tags", "paths", "options")
        if self.own_tests and self.group:
            raise Misfit("group", expected="none: own tests run where the reference system is")
        if self.name in RESERVED or self.name.startswith(
            ("bench-", "explore-", "faults-", "mutate-")
        ):
            raise Misfit("name", expected="a name the noxfile does not use itself")


class SuiteBench(Table, frozen=True):
    """One benchmark of a suite: a script that ``nox -s bench`` runs.

    Attributes:
        name: what ``nox -s bench --`` takes; unique over all suites.
        summary: what it measures, one line.
        script: the file; runs as a module, in the suite's environment, from the root.
    """

    name: _Word
    summary: Text
    script: Annotated[Path, Meta(description=_A_FILE)]

    def __post_init__(self) -> None:
        if self.name in RESERVED_BENCHES:
            raise Misfit("name", expected="a name no benchmark of the harness has")
        if not self.script.is_file():
            raise Misfit("script", expected=_A_FILE)


class _SuiteTable(Table, frozen=True):
    """``[suite]``.

    Attributes:
        name: of the folder and in commands.
        summary: what it tests, one line.
        group: dependency group of the tree's pyproject.toml that its tests need.
        extras: extras of ``staging-harness`` that its tests need.
        subject: the subject file of its reference system; left out when it has none.
        reader: ``MODULE:FUNCTION`` of the suite that reads and checks a subject file; left out for
            :func:`harness_core.system.subject.load_subject`.
        tables: ``MODULE:TYPE`` of the suite, what its subject files say besides ``[subject]`` and
            ``[env]``: a subclass of ``harness_core.system.subject.Tables``; left out when any table
            may stand there.
        boots: id of the test that shows that a product starts, and judges nothing else;
            ``harness subject check`` begins with it.
        faults: the planted faults of that system: a file, or a folder of such files.
        environment: ``MODULE:FUNCTION`` of the suite that opens what it boots, for its tests and for
            ``harness up``.
        messages: ``MODULE:FUNCTION`` of the suite that makes, of what is booted, what can be sent to it
            from the page of ``harness up --ui``; left out when nothing can.
        adapter: the one file that may import the subject, for a subject that is a library.
        library: the folder of that library's distribution, installed beside the tests unless
            ``--subject`` is given; always where `may_import` names modules.
        may_import: modules of the subject that any file may import, e.g. published schemas.
        patching: why its tests may patch; left out when they may not.
        ledger: its requirements; with one, its tests are held to the rules for tests from outside.
        budget_usd: most that a run of it may spend on models; 0.20 when left out.
    """

    name: _Name
    summary: Text
    group: Text
    extras: Texts = ()
    subject: Path | None = None
    reader: _Opener = ""
    tables: _Type = ""
    boots: Annotated[str, like(rf"({TEST})?")] = ""
    faults: Path | None = None
    environment: _Opener = ""
    messages: _Opener = ""
    adapter: Path | None = None
    library: Path | None = None
    may_import: Texts = ()
    patching: str = ""
    ledger: Path | None = None
    budget_usd: _Usd | None = None

    def __post_init__(self) -> None:
        check_distinct(self, "extras", "may_import")
        for key in ("subject", "faults", "adapter", "ledger"):
            path: Path | None = getattr(self, key)
            there = path is None or path.is_file() or (key == "faults" and path.is_dir())
            if not there:
                raise Misfit(key, expected=_A_FILE)
        if self.library is not None and not (self.library / "pyproject.toml").is_file():
            raise Misfit("library", expected="a folder with a pyproject.toml")


class Suite(_SuiteTable, frozen=True, kw_only=True):
    """One suite folder: what its file says of it, besides the following.

    Attributes:
        folder: where it lies.
        sessions: its nox sessions.
        benches: its benchmarks.
        capabilities: what a subject file may claim, in the order of the file.
        optional_gates: what CI may do without, gate → why; any other closed gate is an error there.
    """

    folder: Path
    sessions: tuple[SuiteSession, ...]
    benches: tuple[SuiteBench, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    optional_gates: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_subject_files(self) -> bool:
        """Whether a subject file describes products of its kind, also where its own is a library."""
        return self.subject is not None or bool(self.tables)


class SuiteFile(Table, frozen=True):
    """``suite.toml``, as it is written.

    Attributes:
        suite: what the suite is.
        session: one nox session each.
        bench: one benchmark each, which ``nox -s bench -- NAME`` runs.
        capability: one thing each that a subject file may claim to do.
        optional_gates: what CI may do without, gate → why.
    """

    suite: _SuiteTable
    session: Annotated[
        tuple[SuiteSession, ...], Meta(min_length=1, description="at least one [[session]]")
    ]
    bench: Annotated[tuple[SuiteBench, ...], Meta(description="[[bench]] tables")] = ()
    capability: Annotated[tuple[Capability, ...], Meta(description="[[capability]] tables")] = ()
    optional_gates: dict[str, Text] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, row in enumerate(self.session):
            if row.own_tests and self.suite.subject is None:
                expected = "a suite with a subject to run them in"
                raise Misfit("session", number, "own_tests", expected=expected)
        for kind in ("session", "bench", "capability"):
            names = [row.name for row in getattr(self, kind)]
            for name in names:
                if names.count(name) > 1:
                    raise Misfit(kind, "name", found=name, expected="a name used once")


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
    path = folder / "suite.toml"
    file = read_toml(path, SuiteFile)
    table = file.suite
    if table.name != folder.name:
        expected = f"the name of the folder, {folder.name!r}"
        raise BadInput(path, key="suite.name", found=table.name, expected=expected)
    for number, session in enumerate(file.session):
        for each in session.paths:
            if not (folder / each).exists():
                key, expected = (
                    f"session[{number}].paths",
                    "a file or folder below the suite folder",
                )
                raise BadInput(path, key=key, found=each, expected=expected)
    _check_tests(file, path)
    return Suite(
        **structs.asdict(table),
        folder=folder,
        sessions=file.session,
        benches=file.bench,
        capabilities=file.capability,
        optional_gates=file.optional_gates,
    )


def _check_tests(file: SuiteFile, path: Path) -> None:
    """The files of the tests that are named are there."""
    folder, boots = path.parent, file.suite.boots
    named = [("suite.boots", boots)] if boots else []
    for row in file.capability:
        named += [(f"capability.{row.name}.shown_by", test) for test in row.shown_by]
    for key, test in named:
        if not (folder / test.partition("::")[0]).is_file():
            expected = "FILE.py::TEST with a file below the suite folder"
            raise BadInput(path, key=key, found=test, expected=expected)
    for row in file.capability:
        for each, _ in row.patterns():
            if not any(folder.glob(each)):
                key, expected = f"capability.{row.name}.tests", "a file below the suite folder"
                raise BadInput(path, key=key, found=each, expected=expected)


def _check_against_pyproject(root: Path, suites: tuple[Suite, ...]) -> None:
    """The group and the extras of every suite exist.

    A tree that only uses an installed harness_core has no extras of its own, so extras are compared
    where the tree is the harness itself.
    """
    pyproject = read_pyproject(root)
    groups, extras = pyproject.dependency_groups, pyproject.project.optional_dependencies
    is_harness = pyproject.project.name == "staging-harness"
    for suite in suites:
        wanted = [("suite.group", suite.group, "a dependency group", groups)]
        for row in suite.sessions:
            if row.group:
                key = f"session.{row.name}.group"
                wanted.append((key, row.group, "a dependency group", groups))
        if is_harness:
            wanted += [("suite.extras", extra, "an extra", extras) for extra in suite.extras]
        for key, name, what, known in wanted:
            if name not in known:
                raise BadInput(
                    suite.folder / "suite.toml",
                    key=key,
                    found=name,
                    expected=f"{what} of pyproject.toml: {', '.join(sorted(known))}",
                )
