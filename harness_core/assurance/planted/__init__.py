"""Planted faults: does each test go red, for the right reason, when the product is wrong?

- ``_plan.py``: ``faults.toml`` read into :class:`Fault` rows.
- ``_product.py``: the :class:`Product` that has them: the reference system, or one of another make.
- ``_choice.py``: which of them to plant; a sample that a commit's hash decides.
- ``_outcomes_plugin.py``: a pytest plugin; selects tests by id, writes what became of each.
- ``_outcomes.py``: that record, read back.
- ``_judge.py``: from outcomes to a :class:`Verdict`; only a failed assertion with the expected text
  is a kill.
- ``_pytest.py``: one supervised pytest; ``mutation`` runs its mutants by it too.
- ``_run.py``: the control run, then one pytest process per fault.
- ``_report.py``: the table for people and the JSON for machines.

Source: ``docs/how-to/planted-faults.md``.
"""

from harness_core.assurance.planted._choice import Choice, choose_faults, commit_of, sample_faults
from harness_core.assurance.planted._judge import (
    FaultResult,
    Verdict,
)
from harness_core.assurance.planted._outcomes import Outcomes, TestOutcome, became, first_line
from harness_core.assurance.planted._plan import Fault, FaultsFile, load_faults
from harness_core.assurance.planted._product import Product, foreign_products, load_product
from harness_core.assurance.planted._pytest import PytestRuns
from harness_core.assurance.planted._report import render_table, to_json
from harness_core.assurance.planted._run import (
    ask_right,
    evidence_of,
    plant_fault,
    run_faults,
)

__all__ = [
    "Choice",
    "Fault",
    "FaultResult",
    "FaultsFile",
    "Outcomes",
    "Product",
    "PytestRuns",
    "TestOutcome",
    "Verdict",
    "ask_right",
    "became",
    "choose_faults",
    "commit_of",
    "evidence_of",
    "first_line",
    "foreign_products",
    "load_faults",
    "load_product",
    "plant_fault",
    "render_table",
    "run_faults",
    "sample_faults",
    "to_json",
]
