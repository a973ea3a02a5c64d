"""``[[capability]]`` of a suite.toml: what products of its kind may be able to do, and what shows it."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Final

from msgspec import Meta

from harness_core.base.reading import Table, Text, check_distinct, like

__all__ = ["TEST", "Capability"]

#: The id of a test, relative to the folder of its suite.
TEST: Final = r"[^:]+\.py(::\w+)+(\[.+\])?"

_Test = Annotated[str, like(TEST)]
_Pattern = Annotated[str, like(r"[^:]+\.py(::[^:\[\]]+)?")]
_Key = Annotated[str, like(r"\w+(\.\w+)*")]


class Capability(Table, frozen=True):
    """One thing that a subject file may claim for its product.

    Attributes:
        name: what the file says, and what tests are marked with.
        demands: what whoever claims it has to do on the wire, for people.
        shown_by: ids of tests that show it, relative to the folder of the suite; few and quick ones.
        needs: keys of the subject file that tests of it read: ``texts.echo``.
        tests: ``FILE`` or ``FILE::NAME``, with wildcards: tests that need it without a mark of their own.
    """

    name: Annotated[str, like(r"[a-z0-9]+([.-][a-z0-9]+)*")]
    demands: Text
    shown_by: Annotated[
        tuple[_Test, ...], Meta(min_length=1, description="ids of tests, at least one")
    ]
    needs: tuple[_Key, ...] = ()
    tests: tuple[_Pattern, ...] = ()

    def __post_init__(self) -> None:
        check_distinct(self, "shown_by", "needs", "tests")

    def is_needed_by(self, test: str) -> bool:
        """Whether a test is one of :attr:`tests`.

        Args:
            test: its id with its parameters, relative to the folder of its suite.
        """
        file, _, name = test.partition("::")
        return any(
            fnmatchcase(file, wanted) and fnmatchcase(name, part or "*")
            for wanted, part in self.patterns()
        )

    def patterns(self) -> Iterator[tuple[str, str]]:
        """Of each of :attr:`tests` the file and the name, which may be empty."""
        for pattern in self.tests:
            file, _, name = pattern.partition("::")
            yield file, name
