"""The local driver, by the check that every driver passes, and what is its own."""

import sys
from pathlib import Path

import pytest

from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack
from harness_core.tests.conformance.stack import SAMPLE_VARIABLE, check_stack

pytestmark = pytest.mark.real


async def test_the_local_driver_keeps_every_promise_of_a_stack(tmp_path):
    """The local driver passes the check that every driver passes."""
    evidence = open_evidence(tmp_path / "evidence")
    folder = tmp_path / "sample"
    folder.mkdir()
    numbers = iter(range(99))
    async with open_run(evidence=evidence) as run:

        def open_at(compose: Path):
            options = StackOptions(
                bin=str(compose.parent),
                environment={"PATH": "/usr/bin:/bin", SAMPLE_VARIABLE: "from the caller"},
            )
            where = evidence.child(f"stack-{next(numbers)}")
            return open_stack(run, compose, evidence=where, options=options)

        await check_stack(open_at, folder, python=sys.executable, passed_on="from the caller")
