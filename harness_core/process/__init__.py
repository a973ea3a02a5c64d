"""From an argv to a supervised child, and back to a clean machine.

- ``_run.py``: :func:`open_run`, one run of the harness: its warden, its ledger, its directories.
- ``_start.py``: which arguments can be started, and why a start failed.
- ``_child.py``: :class:`Child`, a supervised process: signals, the stop ladder.
- ``_output.py``: its output on the way into log and tail, redacted; ``_redactions.py``: what had to
  be, so that a leak is not hidden.
- ``_ledger.py``: what a run writes down so that another process can clean up after it.
- ``_mark.py``: what every process below another one carries, wherever it hides.
- ``_sweep.py``: :func:`sweep`, removes what dead runs left, and nothing else.
- ``_sweepers.py``: who removes the kinds of things that this package does not know.
- ``_state.py``: where runs keep their ledgers and directories.
- ``_warden.py``: the parent of all children; runs as a process of its own.
- ``_control.py``: our end of its control socket.
"""

from harness_core.process._child import Child, StopReport, belongs_to
from harness_core.process._ledger import RunLedger, ledgers
from harness_core.process._mark import carriers, carry_mark, new_mark
from harness_core.process._output import OutputLog
from harness_core.process._redactions import RedactedLine, redacted_lines
from harness_core.process._run import LeakFound, Run, open_run
from harness_core.process._state import memory_root, state_root
from harness_core.process._sweep import SweepReport, sweep
from harness_core.process._sweepers import Sweeper, installed_sweepers
from harness_core.process._warden import (
    children,
    command_line,
    descendants,
    is_stopped,
    parent,
    runs,
    start_time,
)

__all__ = [
    "Child",
    "LeakFound",
    "OutputLog",
    "RedactedLine",
    "Run",
    "RunLedger",
    "StopReport",
    "SweepReport",
    "Sweeper",
    "belongs_to",
    "carriers",
    "carry_mark",
    "children",
    "command_line",
    "descendants",
    "installed_sweepers",
    "is_stopped",
    "ledgers",
    "memory_root",
    "new_mark",
    "open_run",
    "parent",
    "redacted_lines",
    "runs",
    "start_time",
    "state_root",
    "sweep",
]
