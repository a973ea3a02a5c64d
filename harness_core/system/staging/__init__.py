"""Hold what a suite boots for a person, and look after it from another terminal.

- ``_openers.py``: :func:`opener_of`, :func:`subject_of`: what a suite boots and reads.
- ``_missing.py``: :func:`check_libraries`, what a suite asks for and this Python does not have.
- ``_reference.py``: :func:`reference_commands`, the environment of a suite's reference system.
- ``_host.py``: the control socket of what is held: :func:`ask`.
- ``_words.py``: what may be asked there, of which :class:`Environment`; ``_messages.py``:
  :class:`Messages`, what a suite can send to it.
- ``_hold.py``: :func:`hold`, ``harness up``: boot, show, follow the logs, stop on request.
- ``_runs.py``: :func:`runs_seen`, ``harness ps``: every run of this user, with its parts.
- ``_logs.py``: :func:`show_logs`, ``harness logs``: the last lines of parts, and what comes.
- ``_down.py``: :func:`take_down`, ``harness down``: ask it to stop, sweep what is dead.
"""

from harness_core.system.options import Options
from harness_core.system.staging._down import take_down
from harness_core.system.staging._hold import Beside, hold
from harness_core.system.staging._host import ask, open_host
from harness_core.system.staging._logs import show_logs
from harness_core.system.staging._messages import Messages, Offer, Way
from harness_core.system.staging._missing import check_libraries
from harness_core.system.staging._openers import (
    choose_suite,
    messages_of,
    opener_of,
    subject_of,
    tables_of,
)
from harness_core.system.staging._reference import reference_commands
from harness_core.system.staging._runs import PartSeen, render, runs_seen
from harness_core.system.staging._words import Environment

__all__ = [
    "Beside",
    "Environment",
    "Messages",
    "Offer",
    "Options",
    "PartSeen",
    "Way",
    "ask",
    "check_libraries",
    "choose_suite",
    "hold",
    "messages_of",
    "open_host",
    "opener_of",
    "reference_commands",
    "render",
    "runs_seen",
    "show_logs",
    "subject_of",
    "tables_of",
    "take_down",
]
