"""For whoever extends or uses the harness: conformance checks of its protocols, and fakes.

- ``_services.py``: :func:`check_service`, and a service in this process.
"""

from harness_core.testing._services import (
    FakeService,
    ServiceState,
    ask_fake,
    check_service,
    open_fake_service,
)

__all__ = ["FakeService", "ServiceState", "ask_fake", "check_service", "open_fake_service"]
