"""One environment, held by one process, used by several: test workers, a person's other terminal.

A *host* opens what a suite boots (:class:`Environment`), holds it and serves a control socket in
the directory of its run. Who uses it *attaches*: gets its description, and its turn. It is closed
by the process that holds it, or by the end of that process, which the run's warden sees.

- ``_host.py``: :func:`open_host`, the socket and what may be asked of it; :class:`Environment`.
- ``_turns.py``: :class:`Turns`, whose turn it is: many at once, or one alone, in order of arrival.
- ``_line.py``: :class:`Line`, a connection of a user of the host; its end gives up its turn.
- ``_wire.py``: requests, answers and errors as lines of JSON.
- ``_held.py``: :func:`hold_host`, a host in a thread, for pytest and the command line.
- ``_registry.py``: :func:`find_runs`, the runs of this user and what they hold.
- ``scheduling.py``: which worker of pytest-xdist runs what; imported on its own, as xdist is.
"""

from harness_core.hosting._held import HeldHost, hold_host
from harness_core.hosting._host import Environment, Host, open_host
from harness_core.hosting._line import Line, ask
from harness_core.hosting._registry import RunSeen, find_runs
from harness_core.hosting._turns import Turns

__all__ = [
    "Environment",
    "HeldHost",
    "Host",
    "Line",
    "RunSeen",
    "Turns",
    "ask",
    "find_runs",
    "hold_host",
    "open_host",
]
