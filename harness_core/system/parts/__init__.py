"""A system of several parts: started side by side, taken away and given back by name.

- ``_parts.py``: :func:`open_parts` and :class:`Parts`: addresses, logs, outages.
- ``_order.py``: who waits for whom; ``_boot.py``: all of them side by side; ``_failed.py``: who is to
  blame when one stays down.
- ``_part.py``: what every part can do, and what each verb means.
- ``_process_part.py``, ``_server_part.py``, ``_double_part.py``: a process, a server of the harness,
  a stand-in of the world outside; ``_held_part.py``: what the last two share. A container of a
  compose file is one of ``harness_core.system.compose``.
- ``_provided.py``, ``gateway.py``: those that the harness itself provides.
- ``_probe.py``: a probe of health over HTTP.
"""

from harness_core.system.parts._double_part import DoublePart
from harness_core.system.parts._failed import ServiceFailed
from harness_core.system.parts._order import Condition, bottom_up, check_order
from harness_core.system.parts._part import Part, State
from harness_core.system.parts._parts import OUTAGES, Booted, Parts, open_booted, open_parts
from harness_core.system.parts._probe import healthy
from harness_core.system.parts._process_part import ProcessPart, ProcessPlan, StartChild
from harness_core.system.parts._provided import (
    nats_part,
    postgres_part,
    recorder_part,
    s3_part,
    temporal_part,
    valkey_part,
)
from harness_core.system.parts._server_part import ServerPart

__all__ = [
    "OUTAGES",
    "Booted",
    "Condition",
    "DoublePart",
    "Part",
    "Parts",
    "ProcessPart",
    "ProcessPlan",
    "ServerPart",
    "ServiceFailed",
    "StartChild",
    "State",
    "bottom_up",
    "check_order",
    "healthy",
    "nats_part",
    "open_booted",
    "open_parts",
    "postgres_part",
    "recorder_part",
    "s3_part",
    "temporal_part",
    "valkey_part",
]
