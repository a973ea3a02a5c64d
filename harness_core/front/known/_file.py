"""``known.toml``: tests that are expected to fail on one product, and what they say then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_core.base.errors import BadInput
from harness_core.base.reading import Table, Text, read_toml

#: Beside a subject file, for every product there is one of in the folder.
NAME = "known.toml"


class Known(Table, frozen=True):
    """One ``[[known]]``.

    Attributes:
        test: the id of a test, from the root or from the suite's folder; of a parametrised one, all
            its rows; ``*`` stands for any text.
        says: a part of what the test says when it fails.
        reason: why it fails.
        link: where that is reported, or decided.
    """

    test: Text
    says: Text
    reason: Text
    link: Text

    def is_about(self, nodeid: str, *, prefix: str) -> bool:
        """Whether a test is meant.

        Args:
            nodeid: its id, from the root.
            prefix: the suite's folder in it.
        """
        pattern = ".*".join(map(re.escape, self.test.split("*"))) + r"(?:\[.*\]|::.*)?"
        short = nodeid.removeprefix(f"{prefix}/")
        return any(re.fullmatch(pattern, each, re.DOTALL) for each in (nodeid, short))

    @property
    def why(self) -> str:
        """Reason and link in one line."""
        return f"{self.reason.rstrip('.')} ({self.link})"


class KnownRows(Table, frozen=True):
    """The file, as it is written.

    Attributes:
        known: one test each that is expected to fail.
    """

    known: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    """The findings on one product.

    Attributes:
        path: the file.
        rows: in its order.
    """

    path: Path
    rows: Sequence[Known] = ()

    def check(self, nodeids: Iterable[str], *, prefix: str) -> None:
        """Check that each row is about a test of the suite, all of which are given.

        Raises:
            BadInput: the first row that is about none.
        """
        tests = list(nodeids)
        for number, row in enumerate(self.rows):
            if not any(row.is_about(nodeid, prefix=prefix) for nodeid in tests):
                raise BadInput(
                    self.path,
                    key=f"known[{number}].test",
                    found=row.test,
                    expected=f"the id of a test of {prefix}, or a pattern with *",
                    next_step="Take the row out if the test is gone",
                )


def known_file(subject: Path) -> Path:
    """Where the findings on a product stand: ``NAME.known.toml`` of its own, else ``known.toml``."""
    own = subject.with_name(f"{subject.stem}.{NAME}")
    return own if own.is_file() else subject.with_name(NAME)


def read_known(path: Path) -> KnownFile:
    """Read a file of findings; one that is not there has no rows.

    Raises:
        BadInput: with file, row and key of the first mistake.
    """
    if not path.exists():
        return KnownFile(path=path)
    read = read_toml(path, KnownRows, expected="a file of known failures (TOML)", named_by="test")
    return KnownFile(path=path, rows=read.known)
