"""For a suite's test of itself: products of other makes, right ones and such with a fault.

They lie in ``foreign/`` of the suite, a folder each with ``subject.toml`` and ``faults.toml``
(``docs/how-to/planted-faults.md``). The test is a few lines:

    @pytest.mark.parametrize("product", right(SUITE))
    def test_what_is_right_passes(product, evidence):
        expect_right(product, evidence)

    @pytest.mark.parametrize(("product", "fault"), wrong(SUITE))
    def test_what_is_wrong_is_told(product, fault, evidence):
        expect_told(product, fault, evidence)
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from harness_core.assurance.planted import (
    Fault,
    Product,
    Verdict,
    ask_right,
    foreign_products,
    plant_fault,
)
from harness_core.base.evidence import Evidence
from harness_core.system.suites import find_root, load_suite

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

__all__ = ["expect_right", "expect_told", "right", "wrong"]


def right(suite: Path) -> list[ParameterSet]:
    """The products of a suite's folder, a row each.

    Raises:
        BadInput: a file of one is malformed.
    """
    return [
        pytest.param(product, id=product.name, marks=_needs(product))
        for product in foreign_products(load_suite(suite))
    ]


def wrong(suite: Path) -> list[ParameterSet]:
    """The same with each of their faults, a row each.

    Raises:
        BadInput: a file of one is malformed.
    """
    return [
        pytest.param(product, fault, id=f"{product.name}-{fault.id}", marks=_needs(product))
        for product in foreign_products(load_suite(suite))
        for fault in product.faults
    ]


def expect_right(product: Product, evidence: Evidence) -> None:
    """Fail when a test blames a product that is right, or does not run that knows its faults."""
    asking = partial(ask_right, product, root=find_root(product.suite.folder), evidence=evidence)
    found = trio.run(asking)

    assert () == found, (
        f"nothing is said against {product.name}, which is right: expected no failure and each test "
        "of its faults to pass, found\n" + "\n".join(found)
    )


def expect_told(product: Product, fault: Fault, evidence: Evidence) -> None:
    """Fail when a fault is not told by the first line of its tests, or another test misleads."""
    root = find_root(product.suite.folder)
    result = trio.run(partial(plant_fault, product, fault, root=root, evidence=evidence))
    found = [
        f"{each.test}: {each.verdict}: {each.detail}"
        for each in result.tests
        if each.verdict is not Verdict.KILLED
    ]

    assert [] == found, (
        f"{product.name} with {fault.id} ({fault.why}): expected each of its tests to say so in its "
        f"first line, and nothing else to be said, found\n" + "\n".join(found)
    )


def _needs(product: Product) -> list[pytest.MarkDecorator]:
    return [pytest.mark.requires(*product.asked.needs)] if product.asked.needs else []
