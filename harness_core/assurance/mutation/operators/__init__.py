"""The operators: what a change is, and the table of all of them.

- ``_change.py``: :class:`Change`, :class:`Site` and the table that operators enter themselves in.
- ``_expressions.py``: comparisons, arithmetic, conditions, constants, arguments.
- ``_statements.py``: what is left out, returned otherwise, or done in another order.
- ``_systems.py``: what systems get wrong: errors, locks, transactions, retries, time, limits of time.
- ``_texts.py``: keys, variables, parts of texts, SQL.
- ``_never.py``: what no operator is shown.
- ``_walk.py``: every change of one file.

Source: ``docs/how-to/mutation.md``, decision 0150.
"""

from harness_core.assurance.mutation.operators import (
    _expressions,
    _statements,
    _systems,
    _texts,
)
from harness_core.assurance.mutation.operators._change import OPERATORS
from harness_core.assurance.mutation.operators._walk import Found, required_of, walk

#: The modules whose import fills the table.
TABLES = (_expressions, _statements, _systems, _texts)

__all__ = ["OPERATORS", "TABLES", "Found", "required_of", "walk"]
