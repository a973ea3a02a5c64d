"""The TOML files that people write, and ``x-harness``: their keys, from the types that read them.

Types behind an extra are imported when their text is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from harness_core.assurance.planted import FaultsFile
from harness_core.assurance.requirements import LedgerFile
from harness_core.doubles.turns import RehearsalsFile
from harness_core.front.known import KnownRows
from harness_core.front.pages._keys import Key, keys_of
from harness_core.front.settings import Settings
from harness_core.system.suites import SuiteFile

__all__ = ["FILES"]


def _equivalents() -> tuple[Key, ...]:
    from harness_core.assurance.mutation import EquivalentsFile

    return keys_of(EquivalentsFile)


def _written() -> tuple[Key, ...]:
    from harness_core.assurance.mutation import WrittenFile

    return keys_of(WrittenFile)


def _model() -> tuple[Key, ...]:
    from harness_core.doubles.model.rehearsed import Form

    return keys_of(Form, at="model")


def _recipe() -> tuple[Key, ...]:
    """In YAML a list of tables is written otherwise than in TOML."""
    from harness_core.system.compose import Recipe

    return tuple(
        replace(key, name=key.name.removeprefix("[[").replace("]] ", "[].").removesuffix("]]"))
        for key in keys_of(Recipe)
    )


#: What a page calls them → their keys.
FILES: Final[Mapping[str, Callable[[], tuple[Key, ...]]]] = {
    "suite.toml": lambda: keys_of(SuiteFile),
    "ledger.toml": lambda: keys_of(LedgerFile),
    "faults.toml": lambda: keys_of(FaultsFile),
    "known.toml": lambda: keys_of(KnownRows),
    "mutants.toml": _equivalents,
    "mutants of one's own": _written,
    "rehearsals": lambda: keys_of(RehearsalsFile),
    "[model]": _model,
    "x-harness": _recipe,
    "[tool.staging_harness]": lambda: keys_of(Settings, at="tool.staging_harness"),
}
