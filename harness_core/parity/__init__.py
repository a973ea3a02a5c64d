"""One scenario, several backends: what each of them did, compared field by field.

- ``_observation.py``: an observation is a mapping, taken apart into named fields.
- ``_compare.py``: :func:`check_parity`, who regressed, in which field, and documented differences.
- ``_stub.py``: :class:`CommandStub`, a subprocess layer on models of command line tools.
- ``_adapter.py``: :func:`load_backends`, an adapter file named on the command line.
- ``_exposure.py``: :func:`exposures`, where a value can be seen that must not be.

Source: seed 003 (PRD 0042), contract "bottle".
"""

from harness_core.parity._adapter import load_backends
from harness_core.parity._compare import (
    Allowance,
    Difference,
    ParityError,
    check_parity,
    compare,
)
from harness_core.parity._exposure import exposures
from harness_core.parity._observation import ABSENT, fields_of
from harness_core.parity._stub import (
    Call,
    CommandStub,
    Reply,
    SimulatedCrash,
    Tool,
    UnknownInvocation,
)

__all__ = [
    "ABSENT",
    "Allowance",
    "Call",
    "CommandStub",
    "Difference",
    "ParityError",
    "Reply",
    "SimulatedCrash",
    "Tool",
    "UnknownInvocation",
    "check_parity",
    "compare",
    "exposures",
    "fields_of",
    "load_backends",
]
