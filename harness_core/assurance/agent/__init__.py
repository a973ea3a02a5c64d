"""What is put into the subject's environment for the time of a campaign, and how it gets there.

- ``_harness_agent.py``: runs at the start of every process of that environment; does nothing unless
  it is asked to. Damages one file of the product, or loads the following; keeps the way to the harness
  open where the process goes behind walls.
- ``_harness_agent_coverage.py``: measures what the process executes, test by test.
- ``_request.py``: how the two are asked: a file that ``HARNESS_AGENT`` names.
- ``_environment.py``: a Python environment; installs the agent into it and removes it, also what a dead run left.
- ``_tests_plugin.py``, ``_hub.py``: name the running test to every process of the product, and write
  down which of them were heard of.

A room of its own, so that a pytest process imports nothing of what plans and judges mutants.

The two agents import nothing of the harness: they run in whatever Python the product has.
"""

from harness_core.assurance.agent._environment import Environment, find_environment, sweep_agent
from harness_core.assurance.agent._request import (
    VARIABLE,
    Damage,
    ask_for_coverage,
    ask_for_damage,
    read_messages,
)

__all__ = [
    "VARIABLE",
    "Damage",
    "Environment",
    "ask_for_coverage",
    "ask_for_damage",
    "find_environment",
    "read_messages",
    "sweep_agent",
]
