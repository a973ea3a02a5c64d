"""One scenario, several backends: what each of them did, compared field by field.

- ``_observation.py``: an observation is a mapping, taken apart into named fields.
- ``_compare.py``: :func:`check_parity`, who regressed, in which field, and documented differences.
- ``_sides.py``: :func:`sides_of`, all of it next to each other, for a report.
- ``_stub.py``: :class:`CommandStub`, a subprocess layer on models of command line tools.
- ``_adapter.py``: :func:`load_backends`, an adapter file named on the command line.
- ``_exposure.py``: :func:`exposures`, where a value can be seen that must not be.

Source: the suite's ledger.
"""

from suites.parity.compare._adapter import load_backends
from suites.parity.compare._compare import (
    Allowance,
    Difference,
    ParityError,
    check_parity,
    compare,
)
from suites.parity.compare._exposure import exposures
from suites.parity.compare._observation import ABSENT, fields_of
from suites.parity.compare._sides import sides_of
from suites.parity.compare._stub import (
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
    "sides_of",
]
