"""For whoever extends or uses the harness: conformance checks of its protocols, and fakes.

- ``_services.py``: :func:`check_service`, and a service in this process.
- ``_mistakes.py``: :func:`check_reader`, every mistake that a configuration file can have.
- ``_stack.py``: ``check_stack``, and a sample stack; ``_sample_server.py``: what that is made of.
  Imported from there, since a stack needs libraries that a service does not.
"""

from harness_core.assurance.conformance._mistakes import Mistake, check_reader, mistakes_in, to_toml
from harness_core.assurance.conformance._services import (
    FakeService,
    ServiceState,
    ask_fake,
    check_service,
    open_fake_service,
)

__all__ = [
    "FakeService",
    "Mistake",
    "ServiceState",
    "ask_fake",
    "check_reader",
    "check_service",
    "mistakes_in",
    "open_fake_service",
    "to_toml",
]
