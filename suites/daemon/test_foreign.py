"""The suite on products of other makes (``foreign/``): right ones pass, faults are told, nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_core.assurance.planted import Fault, Product
from harness_core.base.evidence import Evidence
from harness_core.front.foreign import expect_right, expect_told, right, wrong

pytestmark = [
    pytest.mark.aside("runs the suite itself, on other products"),
    pytest.mark.runner,
]

SUITE = Path(__file__).parent


@pytest.mark.parametrize("product", right(SUITE))
def test_what_is_right_passes(product: Product, evidence: Evidence) -> None:
    """What a product does is found right, and what it does not claim is not held against it."""
    expect_right(product, evidence)


@pytest.mark.parametrize(("product", "fault"), wrong(SUITE))
def test_what_is_wrong_is_told(product: Product, fault: Fault, evidence: Evidence) -> None:
    """The first line of each failure says what the product does wrong, and nothing else fails."""
    expect_told(product, fault, evidence)
