"""What the models of a suite may cost in a run, and what is shown before it is spent.

- ``_plan.py``: :func:`model_budget`, whose limit holds; :func:`cost_plan`, the lines before a run.
- ``_hooks.py``: the same for pytest: :func:`llm_budget_usd` for a suite's conftest,
  :func:`report_costs` for what its gateway counted, from any worker of the run.
"""

from harness_core.front.budget._hooks import (
    CostHooks,
    costs_by_test,
    llm_budget_usd,
    report_costs,
)
from harness_core.front.budget._plan import ModelBudget, cost_plan, model_budget

__all__ = [
    "CostHooks",
    "ModelBudget",
    "cost_plan",
    "costs_by_test",
    "llm_budget_usd",
    "model_budget",
    "report_costs",
]
