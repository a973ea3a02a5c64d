"""Ports that nobody else gets, and proof that what answers is what we started.

- ``_leases.py``: :func:`lease_port`, :func:`listening_socket`, how a child gets its port.
- ``_owners.py``: :func:`listeners`, :func:`owner_of`, :func:`prove_listener`, who listens where.
- ``_probes.py``: one look each: TCP accepts, HTTP answers, an SSE stream sends its headers.
- ``_readiness.py``: :func:`await_ready`, :func:`await_completion`, the stages on the way to ready.
"""

from harness_core.net._leases import PortLease, lease_port, listening_socket
from harness_core.net._owners import Listener, listeners, owner_of, prove_listener
from harness_core.net._probes import Probe, http_answers, sse_opens, tcp_accepts
from harness_core.net._readiness import Stage, await_completion, await_ready, listener_stages

__all__ = [
    "Listener",
    "PortLease",
    "Probe",
    "Stage",
    "await_completion",
    "await_ready",
    "http_answers",
    "lease_port",
    "listener_stages",
    "listeners",
    "listening_socket",
    "owner_of",
    "prove_listener",
    "sse_opens",
    "tcp_accepts",
]
