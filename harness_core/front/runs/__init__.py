"""Whole runs beside each other: two of one suite, or one suite on several products.

- ``_run.py``: :func:`read_run`, what became of each test of a run, from its JUnit files.
- ``_compare.py``: :func:`compare`, what two runs have not in common; ``harness report --compare``.
- ``_cells.py``: :func:`cells_of`, what a run shows of each contract of a ledger.
- ``_survey.py``: :func:`survey`, a suite on one product after the other.
- ``_matrix.py``: :func:`render_matrix`, contract x product; ``harness survey``.

Source: ``docs/how-to/runs.md``.
"""

from harness_core.front.runs._cells import Cell, cells_of
from harness_core.front.runs._compare import Comparison, compare, render_comparison
from harness_core.front.runs._matrix import render_matrix
from harness_core.front.runs._run import Ended, Run, read_run
from harness_core.front.runs._survey import Product, products_of, survey

__all__ = [
    "Cell",
    "Comparison",
    "Ended",
    "Product",
    "Run",
    "cells_of",
    "compare",
    "products_of",
    "read_run",
    "render_comparison",
    "render_matrix",
    "survey",
]
