"""All sessions of a tree, made in the order in which `nox -l` shows them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import nox
from nox import Session

from harness_core.front.sessions import _across
from harness_core.front.sessions._reading import check_names
from harness_core.front.sessions._suite import add_suite
from harness_core.front.sessions._tree import Tree

__all__ = ["add_sessions"]


def add_sessions(tree: Tree) -> None:
    """Make the sessions of every suite, and those that take a suite's name.

    A session that the noxfile has already made is left as it is. Environments are built by uv where
    there is one, and kept until what they are made from changes.

    Raises:
        SystemExit: two files want the same name for a session or a benchmark.
    """
    nox.options.default_venv_backend = "uv|virtualenv"
    nox.options.error_on_external_run = True
    nox.options.reuse_venv = "yes"
    # Without bytecode every process of every run compiles a thousand modules again; pip makes it anyway.
    os.environ.setdefault("UV_COMPILE_BYTECODE", "1")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    make = partial(_make, tree)
    make(_across.lint, tags=["fast", "static"])
    make(_across.explore, venv_backend="none")
    make(_across.faults, default=False, venv_backend="none")
    make(_across.mutate, default=False, venv_backend="none")
    if any(suite["bench"] for suite in tree.suites):
        make(_across.bench, default=False, venv_backend="none", tags=["nightly"])
    make(_across.staging, default=False)
    make(_across.survey, default=False)
    if tree.has_group("coverage"):
        make(_across.coverage, default=False, tags=["nightly"])
    check_names(tree.suites, sessions=nox.registry.get(), benches=tree.benches)
    for suite in tree.suites:
        add_suite(tree, suite)


def _make(tree: Tree, session: Callable[[Tree, Session], Any], **how: Any) -> None:
    name = session.__name__
    if name in nox.registry.get():
        return

    def run(given: Session) -> None:
        session(tree, given)

    run.__doc__ = session.__doc__
    nox.session(name=name, **how)(run)
