"""The sessions of one suite: those that its suite.toml declares, and faults, mutants, benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import nox
from nox import Session

from harness_core.front.sessions._environment import groups_of, install, needs_of, subject_env
from harness_core.front.sessions._tree import Suite, Tree
from harness_core.front.sessions._words import pytest, pytest_words, subject_given

__all__ = ["add_suite"]

#: What follows -- in ``nox -s explore``, and what pytest calls it.
_EXPLORING: Final = {"--seconds": "--explore-seconds", "--seed": "--explore-seed"}


def add_suite(tree: Tree, suite: Suite) -> None:
    """Make every session of a suite."""
    for row in suite["sessions"]:
        _add_session(tree, suite, row)
    if "faults" in suite:
        _add_faults(tree, suite)
    if suite["explores"]:
        _add_explore(tree, suite)
    _add_mutate(tree, suite)
    if suite["bench"]:
        _add_bench(tree, suite)


def _add_session(tree: Tree, suite: Suite, row: Mapping[str, Any]) -> None:
    """What one ``[[session]]`` declares."""
    own = row.get("own_tests", False)

    def run(session: Session) -> None:
        needs = needs_of(tree, session, suite)
        install(
            tree,
            session,
            **{} if own else needs | {"groups": [row.get("group", suite["group"])]},
        )
        options = row.get("options", [])
        env = subject_env(session, suite, options=options)
        words = pytest_words(
            tree,
            session,
            paths=[str(Path("suites", suite["name"], path)) for path in row.get("paths", ["."])],
            markers=row.get("markers", ""),
            options=options,
            # `nox -s soak -- daemon` names the suite as `nox -s faults -- daemon` does.
            args=session.posargs[session.posargs[:1] == [suite["name"]] :],
        )
        if not own:
            pytest(session, words, env=env)
        elif subject_given(session, options):
            session.error("these are the reference system's own tests; they take no --subject")
        elif env:
            python = str(Path(env["HARNESS_SUBJECT_BIN"], "python"))
            session.run(python, "-m", "pytest", *words, external=True)

    run.__doc__ = row["summary"]
    # With this tag a session is given options of the harness's own.
    tags = [*row.get("tags", []), *([] if own else ["tests"])]
    nox.session(name=row["name"], tags=tags, default=row.get("default", False))(run)


def _add_faults(tree: Tree, suite: Suite) -> None:
    """Its planted faults."""

    def run(session: Session) -> None:
        # Faults name tests of every session, so what any of them needs must be there.
        install(tree, session, **needs_of(tree, session, suite) | {"groups": groups_of(suite)})
        env = subject_env(session, suite)
        session.run("harness", "faults", suite["name"], *session.posargs, env=env)

    run.__doc__ = f"Planted faults of {suite['name']} alone."
    nox.session(name=f"faults-{suite['name']}", tags=["faults", "nightly"], default=False)(run)


def _add_explore(tree: Tree, suite: Suite) -> None:
    """Its tests that are marked ``explore``."""

    def run(session: Session) -> None:
        install(tree, session, **needs_of(tree, session, suite))
        env = subject_env(session, suite)
        args = []
        for arg in session.posargs:
            name, equals, value = arg.partition("=")
            args.append(_EXPLORING.get(name, name) + equals + value)
        paths = [str(Path("suites", suite["name"]))]
        words = pytest_words(tree, session, paths=paths, markers="explore", args=args)
        pytest(session, words, env=env)

    run.__doc__ = f"Generated steps against the product of {suite['name']} alone."
    nox.session(name=f"explore-{suite['name']}", tags=["explore"], default=False)(run)


def _add_mutate(tree: Tree, suite: Suite) -> None:
    """Mutants of its product, or what its tests execute of that."""

    def run(session: Session) -> None:
        needs = needs_of(tree, session, suite)
        extras = [*needs["extras"], "mutation", "dask"]
        install(tree, session, **needs | {"groups": groups_of(suite), "extras": extras})
        env = subject_env(session, suite)
        words = session.posargs
        action, words = ("coverage", words[1:]) if words[:1] == ["coverage"] else ("run", words)
        # This environment is made for nothing else: processes of a library may have the agent.
        here = ["--here"] if suite.get("library") and "subject" not in suite else []
        session.run("harness", "mutate", action, suite["name"], *here, *words, env=env)

    run.__doc__ = f"Mutants of the product of {suite['name']}, and its coverage."
    nox.session(name=f"mutate-{suite['name']}", tags=["mutants"], default=False)(run)


def _add_bench(tree: Tree, suite: Suite) -> None:
    """Its benchmarks."""

    def run(session: Session) -> None:
        install(tree, session, **needs_of(tree, session, suite))
        env = subject_env(session, suite)
        rows = {row["name"]: row for row in suite["bench"]}
        for name in session.posargs or rows:
            module = Path("suites", suite["name"], rows[name]["script"]).with_suffix("")
            session.run("python", "-m", ".".join(module.parts), env=env)

    run.__doc__ = f"Benchmarks of {suite['name']} alone."
    nox.session(name=f"bench-{suite['name']}", tags=["bench"], default=False)(run)
