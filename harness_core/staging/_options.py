"""What is asked of an environment, and where a suite says how to open one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_core import limits
from harness_core.errors import BadInput
from harness_core.staging._missing import check_libraries

if TYPE_CHECKING:
    from harness_core.staging._host import Environment
    from harness_core.suites import Suite

__all__ = ["Opener", "Options", "environment_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a person may ask of an environment; the same words as pytest's.

    Attributes:
        subject: a subject file; the suite's reference system when ``None``.
        services: where servers come from: ``local``, ``container`` or ``external``.
        llm: how the model gateway answers.
        llm_upstream: base URL of the provider in mode ``live``.
        budget_usd: hard limit of the model's cost.
    """

    subject: Path | None = None
    services: str = "local"
    llm: str = "rehearsed"
    llm_upstream: str | None = None
    budget_usd: float = limits.LLM_BUDGET_USD


#: ``open_environment(run, options=…, evidence=…, say=…)``, an async context manager.
Opener = Callable[..., "AbstractAsyncContextManager[Environment]"]


def environment_of(
    suites: Sequence[Suite], name: str | None, *, root: Path
) -> tuple[Suite, Opener]:
    """The suite whose environment is meant, and how it is opened.

    Args:
        suites: of the tree.
        name: of a suite; may be left out where only one has an environment.
        root: of the tree, from which suites are imported.

    Raises:
        BadInput: no such suite, none or several to choose from, or its opener cannot be imported.
    """
    bootable = {suite.name: suite for suite in suites if suite.environment}
    known = f"one of {', '.join(bootable)}" if bootable else "a suite with `environment`"
    if name is None and len(bootable) != 1:
        raise BadInput("harness up", key="SUITE", found=name, expected=known)
    suite = bootable.get(name) if name is not None else next(iter(bootable.values()))
    if suite is None:
        raise BadInput("harness up", key="SUITE", found=name, expected=known)
    return suite, _load(suite, root=root)


def _load(suite: Suite, *, root: Path) -> Opener:
    module, _, function = suite.environment.partition(":")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        opener: Opener = getattr(importlib.import_module(f"suites.{suite.name}.{module}"), function)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ImportError):
            action = f"boot what {suite.name} tests"
            check_libraries(suite, root=root, action=action, seen=error)
        raise BadInput(
            suite.folder / "suite.toml",
            key="suite.environment",
            found=suite.environment,
            expected=f"MODULE:FUNCTION of the suite ({error})",
        ) from error
    return opener
