"""Generated steps against a running product: state machines of Hypothesis that wait on the suite's loop.

- ``_machine.py``: :class:`Machine`, rules that reach async code.
- ``_explore.py``: :class:`Explore`, rounds of examples until a test's share of the time is over.
- ``_examples.py``: the examples of one round, what each did, and when no more are wanted.
- ``_story.py``: the steps of a failure, its seed and how to repeat it.
"""

from harness_core.base.machine import need_extra

need_extra("explore", action="use harness_core.assertions.exploring")

from harness_core.assertions.exploring._explore import Explore
from harness_core.assertions.exploring._machine import Machine

__all__ = ["Explore", "Machine"]
