"""What faults are planted in: a suite's reference system, or a product of another make beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness_core.assurance.planted._plan import Asked, Fault, load_asked, load_faults
from harness_core.base.errors import BadInput
from harness_core.system.subject import load_subject
from harness_core.system.suites import Suite

#: What runs the suite itself is never asked of a product: it would begin again.
_NOT_ASKED: Final = "not runner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product, and what it can be made to do wrong.

    Attributes:
        suite: whose tests judge it.
        file: where its faults stand: a file, or a folder of such.
        faults: in the order of the file.
        subject: the subject file of a product of another make; ``None`` for the reference system.
        asked: what such a product is asked.
    """

    suite: Suite
    file: Path
    faults: tuple[Fault, ...]
    subject: Path | None = None
    asked: Asked = field(default_factory=Asked)

    @property
    def name(self) -> str:
        """Of its folder, or of the suite."""
        return self.suite.name if self.subject is None else self.subject.parent.name

    @property
    def right(self) -> tuple[str, ...]:
        """Tests that are asked of it without a fault, as pytest names them."""
        return self.ids(self.asked.right)

    def tests(self, fault: Fault) -> tuple[str, ...]:
        """Tests that are asked of it with a fault; of the reference system those of the fault alone."""
        if self.subject is None:
            return self.ids(fault.tests)
        named = [test for each in self.faults for test in each.tests]
        return self.ids([*named, *self.asked.beside])

    def ids(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Tests of the suite, as pytest names them."""
        folder = f"suites/{self.suite.name}"
        return tuple(dict.fromkeys(folder if each == "." else f"{folder}/{each}" for each in tests))

    @property
    def options(self) -> tuple[str, ...]:
        """What pytest is given besides."""
        if self.subject is None:
            return ()
        own = f" and ({self.asked.markers})" if self.asked.markers else ""
        return (f"--subject={self.subject}", "-m", f"{_NOT_ASKED}{own}")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of pytest, in which no fault is switched on by accident."""
        switches = {name for fault in self.faults for name in fault.env}
        env = {name: value for name, value in os.environ.items() if name not in switches}
        if self.subject is None:
            return env
        # It runs on what is installed with the tests, and what it is not asked is no error of CI.
        return env | {"HARNESS_SUBJECT_BIN": "", "HARNESS_REQUIRE": "", "CI": ""}


def load_product(suite: Suite, subject: Path | None = None) -> Product:
    """Read the faults of a suite's reference system, or those beside a subject file.

    Raises:
        BadInput: there are none, or a file is malformed.
    """
    if subject is not None:
        load_subject(subject)
        file = subject.resolve().with_name("faults.toml")
        asked, faults = load_asked(file, folder=suite.folder)
        return Product(
            suite=suite, file=file, faults=faults, subject=subject.resolve(), asked=asked
        )
    if suite.faults is None:
        raise BadInput(
            suite.folder / "suite.toml",
            key="suite.faults",
            found=None,
            expected='a file of planted faults, e.g. faults = "faults.toml"',
        )
    return Product(suite=suite, file=suite.faults, faults=load_faults(suite.faults))


def foreign_products(suite: Suite) -> tuple[Product, ...]:
    """The products of other makes that lie in ``foreign/`` of a suite, by name.

    Raises:
        BadInput: a file of one is malformed.
    """
    return tuple(
        load_product(suite, file) for file in sorted(suite.folder.glob("foreign/*/subject.toml"))
    )
