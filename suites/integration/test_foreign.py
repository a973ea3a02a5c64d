"""The suite against products that others might have written: what is right passes, each planted fault is told.

What such a product does not have is not run, with the reason; nothing is an error of the harness.
"""

from __future__ import annotations

import os
import re
import subprocess  # lint: allow driver: runs the suite itself, not the system
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from harness_core.assurance.gates import closed_reason
from harness_core.base.reading import Table, read_toml
from harness_core.base.slowness import patience
from harness_core.front.skips import not_run

pytestmark = [
    pytest.mark.aside("runs the suite itself, against other products"),
    pytest.mark.runner,
]

SUITE: Final = Path(__file__).parent

#: Each product's folder below foreign/ → what it needs of the machine, and the variable of its faults.
PRODUCTS: Final = {
    "shed": (("node", "bubblewrap"), "SHED_FAULT"),
    "store": (("postgres",), "STORE_FAULT"),
}

#: A run takes some seconds on a quiet machine; this bounds hanging.
RUN_S: Final = 600.0


class Fault(Table, frozen=True):
    """One thing that a product can be made to do wrong: ``docs/how-to/planted-faults.md``."""

    id: str
    why: str
    tests: tuple[str, ...]
    says: str


class _Faults(Table, frozen=True):
    fault: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run of the suite.

    Attributes:
        outcomes: test, as ``folder/file.py::name`` → ``passed``, ``skipped``, ``failure`` or ``error``,
            and the first line of what it says.
        output: what pytest printed.
    """

    outcomes: Mapping[str, tuple[str, str]] = field(repr=False)
    output: str = field(repr=False)

    def that(self, *kinds: str) -> dict[str, str]:
        """The tests that ended in one of these ways, and what each says."""
        return {test: text for test, (kind, text) in self.outcomes.items() if kind in kinds}


Run = Callable[..., Ran]


def _faults() -> list[tuple[str, Fault]]:
    return [
        (product, fault)
        for product in PRODUCTS
        for fault in read_toml(SUITE / "foreign" / product / "faults.toml", _Faults).fault
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Run:
    """Runs tests of the suite against a product, with one of its faults or none."""

    def running(product: str, tests: Sequence[str] = (), *, fault: str = "") -> Ran:
        gates, variable = PRODUCTS[product]
        for gate in gates:
            if reason := closed_reason(gate):
                not_run("gate", reason, gate=gate)
        folder = tmp_path_factory.mktemp(f"{product}-{fault or 'right'}")
        junit = folder / "report.xml"
        chosen = [str(SUITE / test) for test in tests] or [str(SUITE)]
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", *chosen, "-m", "not runner"),
                *("-p", "no:cacheprovider", "-n", "0", f"--junitxml={junit}"),
                f"--subject={SUITE / 'foreign' / product / 'subject.toml'}",
                f"--evidence={folder / 'evidence'}",
            ],
            cwd=pytestconfig.rootpath,
            env={**os.environ, "HARNESS_REQUIRE": "", variable: fault},
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(RUN_S),
        )

        assert junit.is_file(), ended.stdout + ended.stderr
        return Ran(
            outcomes=dict(map(_outcome, ET.parse(junit).iter("testcase"))), output=ended.stdout
        )

    return running


def _outcome(case: ET.Element) -> tuple[str, tuple[str, str]]:
    child = next((each for each in case if each.tag in {"failure", "error", "skipped"}), None)
    place = case.get("classname", "").removeprefix("suites.integration.").replace(".", "/")
    kind, text = ("passed", "") if child is None else (child.tag, child.get("message", ""))
    return f"{place}.py::{case.get('name')}", (kind, text.strip().partition("\n")[0])


@pytest.fixture(scope="module")
def right(run: Run) -> Callable[[str], Ran]:
    """The run of everything against a product without any fault: one for each."""
    return cache(run)


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_is_right_passes(product: str, right: Callable[[str], Ran]) -> None:
    """Nothing of it is blamed, and no test fails to be carried out; of its capabilities each is tested."""
    ran = right(product)

    assert {} == ran.that("failure", "error"), (
        f"expected nothing wrong with {product}: {ran.output[-4000:]}"
    )
    passed = ran.that("passed")
    named = {test for each, fault in _faults() if each == product for test in fault.tests}
    assert named <= set(passed), f"expected {sorted(named - set(passed))} to be run and to pass"


@pytest.mark.parametrize("product", PRODUCTS)
def test_what_it_does_not_have_is_not_run(product: str, right: Callable[[str], Ran]) -> None:
    """Each row that is not run names the capability that the subject file does not list."""
    told = right(product).that("skipped")
    lacks = re.compile(rf"(Skipped: )?{product} lists no capability '[\w-]+' in subject\.toml")
    other = {test: text for test, text in told.items() if not lacks.match(text)}

    assert told, f"expected rows that {product} has nothing of"
    assert {} == other, f"expected each reason to name a capability: {other}"


@pytest.mark.parametrize(
    ("product", "fault"), [pytest.param(*each, id=f"{each[0]}-{each[1].id}") for each in _faults()]
)
def test_a_fault_is_told_and_nothing_else(product: str, fault: Fault, run: Run) -> None:
    """The tests of what is wrong fail and say so in their first line; those of all other faults pass."""
    # Whatever another fault turns red must stay as it was.
    tests = sorted({test for each, other in _faults() if each == product for test in other.tests})
    ran = run(product, tests, fault=fault.id)
    failed = ran.that("failure", "error")

    assert set(fault.tests) == set(failed), f"{fault.why} Found {failed}"
    silent = {test: text for test, text in failed.items() if not re.search(fault.says, text)}
    assert {} == silent, f"{fault.why} Expected {fault.says!r} in the first line"
    assert set(tests) - set(failed) == set(ran.that("passed")), f"not run: {ran.that('skipped')}"
