"""``mutants.toml``: survivors that are no faults, each with the reason, for as long as its code stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from harness_core.assurance.mutation._index import Mutant
from harness_core.base.errors import BadInput
from harness_core.base.reading import Table, Text, read_toml

FILE = "mutants.toml"


class Equivalent(Table, frozen=True):
    """A mutant that is as right as the product.

    Attributes:
        id: of the mutant, as reports call it.
        file: the file that it changes, as reports call it.
        function: the function.
        diff: hash of what it replaces by what, which reports show.
        reason: why no contract is broken by it.
    """

    id: Text
    file: Text
    function: Text
    diff: Text
    reason: Annotated[
        str,
        Meta(min_length=10, description="a sentence that says which contract it keeps, and why"),
    ]


class EquivalentsFile(Table, frozen=True):
    """The file, as it is written.

    Attributes:
        mutant: one survivor each that is no fault.
    """

    mutant: tuple[Equivalent, ...] = ()


def load_equivalents(folder: Path) -> dict[str, Equivalent]:
    """Those of a suite, by id; none when it has no such file.

    Raises:
        BadInput: it is malformed, or an id occurs twice.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    found: dict[str, Equivalent] = {}
    for row in read_toml(path, EquivalentsFile).mutant:
        if row.id in found:
            raise BadInput(path, key="mutant.id", found=row.id, expected="an id used once")
        found[row.id] = row
    return found


def stale_equivalents(
    equivalents: Mapping[str, Equivalent], mutants: Iterable[Mutant]
) -> dict[str, str]:
    """Entries whose code has changed since they were written, with what is there now."""
    known = {mutant.id: mutant for mutant in mutants}
    stale = {}
    for id_, row in equivalents.items():
        mutant = known.get(id_)
        if mutant is None:
            stale[id_] = f"{row.file}: {row.function}: no such mutant any more"
        elif mutant.diff_hash != row.diff:
            stale[id_] = (
                f"{row.file}: {row.function}: found diff {mutant.diff_hash} ({mutant.what}), "
                f"expected {row.diff}"
            )
    return stale
