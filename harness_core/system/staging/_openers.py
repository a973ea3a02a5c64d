"""What a suite boots and reads, as its suite.toml names it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_core.base.errors import BadInput
from harness_core.system.claims import check_claims
from harness_core.system.staging._missing import check_libraries
from harness_core.system.subject import Subject, Tables, load_subject

if TYPE_CHECKING:
    from harness_core.system.staging._messages import Messages
    from harness_core.system.staging._words import Environment
    from harness_core.system.suites import Suite

__all__ = ["Opener", "choose_suite", "messages_of", "opener_of", "subject_of", "tables_of"]


#: ``open_environment(run, subject, options=…, evidence=…, say=…)``, an async context manager.
Opener = Callable[..., "AbstractAsyncContextManager[Environment]"]


def choose_suite(suites: Sequence[Suite], name: str | None) -> Suite:
    """The suite whose environment is meant.

    Args:
        suites: of the tree.
        name: of a suite; may be left out where only one has an environment.

    Raises:
        BadInput: no such suite, none or several to choose from.
    """
    bootable = {suite.name: suite for suite in suites if suite.environment}
    known = f"one of {', '.join(bootable)}" if bootable else "a suite with `environment`"
    if name is None and len(bootable) != 1:
        raise BadInput("harness up", key="SUITE", found=name, expected=known)
    suite = bootable.get(name) if name is not None else next(iter(bootable.values()))
    if suite is None:
        raise BadInput("harness up", key="SUITE", found=name, expected=known)
    return suite


def opener_of(suite: Suite, *, root: Path) -> Opener:
    """How the environment of a suite is opened.

    Args:
        suite: one that has an environment.
        root: of the tree, from which suites are imported.

    Raises:
        BadInput: it cannot be imported.
        Unavailable: a library that it needs is not installed.
    """
    opener: Opener = _load(suite, "environment", root=root)
    return opener


def messages_of(suite: Suite, *, root: Path) -> Callable[[Any, Any], Messages] | None:
    """What makes, of an environment and its subject, what can be sent; ``None`` where nothing can.

    Raises:
        BadInput: it cannot be imported.
    """
    if not suite.messages:
        return None
    made: Callable[[Any, Any], Messages] = _load(suite, "messages", root=root)
    return made


def subject_of(suite: Suite, given: Path | None, *, root: Path) -> Subject:
    """What a suite tests: a subject file, read as the suite reads it.

    Args:
        suite: one that reads subject files.
        given: another subject file than that of its reference system; there must be one where the suite
            has none of its own.
        root: of the tree, from which suites are imported.

    Raises:
        BadInput: the first mistake in the file, with file and key.
    """
    path = given.absolute() if given is not None else suite.subject
    assert path is not None, "a suite without a subject file has no subject to read"
    reader: Callable[[Path], Subject] = (
        _load(suite, "reader", root=root) if suite.reader else load_subject
    )
    subject = reader(path)
    if (tables := tables_of(suite, root=root)) is not None:
        subject.read_tables(tables)
    check_claims(subject, suite)
    return subject


def tables_of(suite: Suite, *, root: Path) -> type[Tables] | None:
    """What the subject files of a suite say besides ``[subject]`` and ``[env]``, where it has a type.

    Raises:
        BadInput: it cannot be imported, or is no type of tables.
    """
    if not suite.tables:
        return None
    found = _load(suite, "tables", root=root)
    if not (isinstance(found, type) and issubclass(found, Tables)):
        raise BadInput(
            suite.folder / "suite.toml",
            key="suite.tables",
            found=suite.tables,
            expected=f"MODULE:TYPE, a subclass of {Tables.__module__}.{Tables.__name__}",
        )
    return found


def _load(suite: Suite, key: str, *, root: Path) -> Any:
    named: str = getattr(suite, key)
    module, _, function = named.partition(":")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return getattr(importlib.import_module(f"suites.{suite.name}.{module}"), function)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ImportError):
            action = f"boot what {suite.name} tests"
            check_libraries(suite, root=root, action=action, seen=error)
        raise BadInput(
            suite.folder / "suite.toml",
            key=f"suite.{key}",
            found=named,
            expected=f"MODULE:FUNCTION of the suite ({error})",
        ) from error
