"""The suite on products of other makes (``foreign/``): right ones pass, faults are told, nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness_core.assurance.planted import Fault, Product, PytestRuns
from harness_core.base.evidence import Evidence
from harness_core.front.foreign import expect_right, expect_told, right, wrong
from harness_core.process import open_run

pytestmark = [
    pytest.mark.aside("runs the suite itself, on other products"),
    pytest.mark.runner,
    pytest.mark.slow,
]

SUITE = Path(__file__).parent

#: A run takes seconds on a quiet machine; this bounds hanging.
RUN_S = 300


@pytest.mark.parametrize("product", right(SUITE))
def test_what_is_right_passes(product: Product, evidence: Evidence) -> None:
    """Nothing is said against a product that does what it claims, however it is made."""
    expect_right(product, evidence)


@pytest.mark.parametrize(("product", "fault"), wrong(SUITE))
def test_what_is_wrong_is_told(product: Product, fault: Fault, evidence: Evidence) -> None:
    """The first line of each failure says what the product did, and no other test fails."""
    expect_told(product, fault, evidence)


@pytest.mark.parametrize("product", [row for row in right(SUITE) if row.id == "hive"])
async def test_where_what_is_valid_is_refused_refusals_are_not_run(
    product: Product, evidence: Evidence, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A file that leaves out what the product needs makes it refuse everything: that says nothing of it."""
    assert product.subject is not None
    folder = product.subject.parent
    text = product.subject.read_text(encoding="utf-8")
    text = text.replace(', person = "{sender.identity}"', "").replace(
        'directory = "cells"', f'directory = "{folder / "cells"}"'
    )
    subject = tmp_path / "hive.toml"
    subject.write_text(text.replace('cwd = "."', f'cwd = "{folder}"'), encoding="utf-8")
    product = replace(product, subject=subject)
    async with open_run(evidence=evidence) as run:
        outcomes, _ = await PytestRuns(run=run, root=pytestconfig.rootpath).selected(
            product.ids(["contracts/test_envelopes.py"]),
            env=product.environment,
            limit_s=RUN_S,
            evidence=evidence,
            options=(*product.options, "-k", "malformed and (left or number)"),
        )
    told = [each.text for each in outcomes.tests.values() if "valid request too" in each.text]

    assert {"skipped"} == {each.outcome for each in outcomes.tests.values()}, evidence.path
    assert told, evidence.path
    assert all("form.sender.person" in said for said in told), f"it says what is wanted: {told}"
