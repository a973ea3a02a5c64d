"""Sessions that take the name of a suite after ``--``, or go through all suites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nox import Session

from harness_core.front.sessions._environment import (
    groups_of,
    install,
    needs_of,
    reference_env,
    subject_env,
)
from harness_core.front.sessions._tree import Suite, Tree
from harness_core.front.sessions._words import pytest_words

__all__ = ["bench", "coverage", "explore", "faults", "lint", "mutate", "staging", "survey"]


def lint(tree: Tree, session: Session) -> None:
    """Check suites and reference systems for what other linters cannot see (docs/reference/lint.md)."""
    install(tree, session)
    session.run("harness", "lint", *session.posargs)


def explore(tree: Tree, session: Session) -> None:
    """Drive the products by generated steps, half a minute each (-- SUITE --seconds N --seed N)."""
    named = [suite["name"] for suite in tree.suites if suite["name"] in session.posargs]
    exploring = list(tree.where("explores"))
    for name in named:
        if name not in exploring:
            known = ", ".join(exploring) or "no suite"
            session.error(f"no test of {name} is marked explore; of {known} some are")
    rest = [arg for arg in session.posargs if arg not in named]
    for name in named or exploring:
        session.notify(f"explore-{name}", posargs=rest)


def faults(tree: Tree, session: Session) -> None:
    """Plant faults in the reference systems: each must turn its named tests red (-- SUITE [FAULT])."""
    planted = tree.where("faults")
    chosen = [name for name in session.posargs if name in planted]
    rest = [arg for arg in session.posargs if arg not in planted]
    for name in chosen or planted:
        session.notify(f"faults-{name}", posargs=rest)


def mutate(tree: Tree, session: Session) -> None:
    """Change a product in small ways: do the tests of its suite notice? (-- SUITE --sample N …)."""
    suite = _named_first(tree, session)
    session.notify(f"mutate-{suite['name']}", posargs=session.posargs[1:])


def bench(tree: Tree, session: Session) -> list[str] | None:
    """Benchmarks of the suites (-- NAME …).

    Returns:
        What is left for the noxfile's own benchmarks, ``None`` when nothing is.
    """
    owners = {row["name"]: suite["name"] for suite in tree.suites for row in suite["bench"]}
    chosen = [name for name in session.posargs if name in owners]
    rest = [arg for arg in session.posargs if arg not in owners]
    for name in chosen or ([] if rest else owners):
        session.notify(f"bench-{owners[name]}", posargs=chosen or [])
    return None if chosen and not rest else rest


def staging(tree: Tree, session: Session) -> None:
    """Boot what a suite tests and hold it until Ctrl-C or `harness down` (-- SUITE --ui: with a page of it)."""
    bootable = tree.where("environment")
    if not bootable:
        session.error("no suite.toml names an environment")
    named = [arg for arg in session.posargs if arg in bootable]
    if not named:
        named = sorted(bootable)[:1]
        session.log(f"staging {named[0]}; all that can be: {', '.join(sorted(bootable))}")
    suite = bootable[named[0]]
    extras, libraries = [*suite.get("extras", [])], []
    if "--ui" in session.posargs:
        extras.append("ui")
        # What the suite can send may be in the words of its library.
        if library := suite.get("library"):
            libraries.append(tree.root / "suites" / suite["name"] / library)
    install(tree, session, extras=extras, groups=[suite["group"]], libraries=libraries)
    rest = [arg for arg in session.posargs if arg != suite["name"]]
    # Ctrl-C reaches both processes: nox must wait until the environment is down.
    session.run(
        *("harness", "up", suite["name"], *rest),
        env=subject_env(session, suite),
        interrupt_timeout=90,
        terminate_timeout=90,
    )


def survey(tree: Tree, session: Session) -> None:
    """Run a suite on several products, print contract x product (-- SUITE --subject FILE …)."""
    suite = _named_first(tree, session)
    install(tree, session, **needs_of(tree, session, suite) | {"groups": groups_of(suite)})
    session.run("harness", "survey", *session.posargs, env=reference_env(session, suite))


def coverage(tree: Tree, session: Session) -> None:
    """What all tests execute, with a floor; -- SUITE: of its product."""
    named = [suite["name"] for suite in tree.suites if suite["name"] in session.posargs[:1]]
    if named:
        session.notify(f"mutate-{named[0]}", posargs=["coverage", *session.posargs[1:]])
        return
    rows = _measured(tree)
    only = [name for name in session.posargs if name in rows]
    needs = [needs_of(tree, session, suite) for suite, _ in rows.values() if suite]
    install(
        tree,
        session,
        extras=sorted({*tree.extras, *(extra for each in needs for extra in each["extras"])}),
        groups=sorted({"coverage", *(group for each in needs for group in each["groups"])}),
        libraries=sorted({each for need in needs for each in need["libraries"]}),
    )
    session.run("coverage", "erase")
    for name in only or rows:
        suite, row = rows[name]
        words = pytest_words(
            tree,
            session,
            paths=row["paths"],
            markers=row.get("markers", ""),
            options=row.get("options", []),
            args=[],
        )
        # What fails here fails in its own session too; this one measures.
        session.run(
            *("coverage", "run", f"--context={name}", "-m", "pytest", *words),
            env={
                "HARNESS_SESSION": name,
                # Tests that start a pytest of their own expect its order too.
                "PYTEST_ADDOPTS": "-p no:randomly",
                **(subject_env(session, suite) if suite else {}),
            },
            success_codes=[0, 1, 6],
        )
    session.run("coverage", "combine", "-q")
    session.run("coverage", "report", *(["--fail-under=0"] if only else []))


def _measured(tree: Tree) -> dict[str, tuple[Suite | None, Mapping[str, Any]]]:
    """The sessions that count for coverage, by name: those of bare nox, and those tagged measured."""
    rows: dict[str, tuple[Suite | None, Mapping[str, Any]]] = {
        name: (None, row) for name, row in tree.own.items()
    }
    for suite in tree.suites:
        for row in suite["sessions"]:
            counts = row.get("default") or "measured" in row.get("tags", [])
            if counts and not row.get("own_tests"):
                paths = [f"suites/{suite['name']}/{path}" for path in row.get("paths", ["."])]
                rows[row["name"]] = (suite, row | {"paths": paths})
    return rows


def _named_first(tree: Tree, session: Session) -> Suite:
    """The suite whose name comes first after ``--``."""
    found = {suite["name"]: suite for suite in tree.suites}
    name = next(iter(session.posargs), "")
    if name not in found:
        session.error(f"name a suite: {', '.join(found)}")
    return found[name]
