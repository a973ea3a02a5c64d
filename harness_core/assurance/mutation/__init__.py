"""Mutation testing of the product, in all its processes, by the tests of a suite.

- ``operators/``: which changes are made; ``_index.py``: all of them for a product, with ids that stay;
  ``_written.py``: those of a file of one's own.
- ``_product.py``: which files are the product's own, and which Python runs them.
- ``_measure.py``, ``_map.py``: what each test executes; ``_coverage_report.py``: the same for people;
  ``_unheard.py``: which processes ran without the agent.
- ``_choice.py``: which mutants to run; ``_equivalents.py``: ``mutants.toml``.
- ``_job.py``: one mutant and its tests; ``_verdict.py``: what that proves.
- ``_campaign.py``: all chosen mutants; ``_dask.py``: on many machines; ``_store.py``: their results.
- ``_report.py``, ``_stryker.py``: for people, for machines, for viewers.

The processes of the product and of pytest are reached by ``harness_core.assurance.agent``.
Source: ``docs/how-to/mutation.md``, decision 0150.
"""

from harness_core.base.machine import need_extra

need_extra("mutation", action="mutate a product")

from harness_core.assurance.mutation._campaign import (
    BUDGET_S,
    Plan,
    folder_of,
    results_of,
    run_campaign,
)
from harness_core.assurance.mutation._choice import Choice, choose_mutants, wilson
from harness_core.assurance.mutation._coverage_report import (
    coverage_by_file,
    coverage_json,
    render_coverage,
)
from harness_core.assurance.mutation._equivalents import EquivalentsFile
from harness_core.assurance.mutation._index import Mutant, build_index, load_index
from harness_core.assurance.mutation._job import Setting, enter_environment
from harness_core.assurance.mutation._measure import choose_sessions, measured_map
from harness_core.assurance.mutation._product import Product, find_product
from harness_core.assurance.mutation._report import render_summary, render_survivors, to_json
from harness_core.assurance.mutation._store import Store, merge_stores
from harness_core.assurance.mutation._stryker import to_stryker
from harness_core.assurance.mutation._verdict import Result, Verdict
from harness_core.assurance.mutation._written import WrittenFile

__all__ = [
    "BUDGET_S",
    "Choice",
    "EquivalentsFile",
    "Mutant",
    "Plan",
    "Product",
    "Result",
    "Setting",
    "Store",
    "Verdict",
    "WrittenFile",
    "build_index",
    "choose_mutants",
    "choose_sessions",
    "coverage_by_file",
    "coverage_json",
    "enter_environment",
    "find_product",
    "folder_of",
    "load_index",
    "measured_map",
    "merge_stores",
    "render_coverage",
    "render_summary",
    "render_survivors",
    "results_of",
    "run_campaign",
    "to_json",
    "to_stryker",
    "wilson",
]
