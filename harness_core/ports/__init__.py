"""Ports that no other process gets, and proof that what answers is what we started.

- ``_leases.py``: :func:`lease_port`, :func:`listening_socket`, how a child gets its port.
- ``_owners.py``: :func:`listeners`, :func:`owner_of`, :func:`prove_listener`, who listens where.
- ``_probes.py``: one probe: TCP accepts; ``harness_core.doubles.http`` has those of HTTP.
- ``_readiness.py``: :func:`await_ready`, :func:`await_completion`, the stages on the way to ready.
"""

from harness_core.ports._leases import PortLease, lease_port, listening_socket
from harness_core.ports._owners import Listener, listeners, owner_of, prove_listener
from harness_core.ports._probes import LOOK_S, Probe, reason_of, tcp_accepts
from harness_core.ports._readiness import Stage, await_completion, await_ready, listener_stages

__all__ = [
    "LOOK_S",
    "Listener",
    "PortLease",
    "Probe",
    "Stage",
    "await_completion",
    "await_ready",
    "lease_port",
    "listener_stages",
    "listeners",
    "listening_socket",
    "owner_of",
    "prove_listener",
    "reason_of",
    "tcp_accepts",
]
