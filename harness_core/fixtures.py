"""The types of the fixtures that the pytest plugin gives, for the annotations of tests.

    from harness_core.fixtures import Database

    def test_a_user_is_saved(database: Database) -> None: ...

Each is imported when it is first asked for: one whose extra is not installed says so then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from harness_core.front import handles

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.doubles.mail import Mail
    from harness_core.doubles.model import Fault
    from harness_core.front.handles import (
        Clock,
        Database,
        Databases,
        How,
        Mailbox,
        ModelGateway,
        Nats,
        Outage,
        Outages,
        Ports,
        Process,
        Processes,
        S3Bucket,
        Stack,
        SyncDatabase,
        SyncMailbox,
        SyncModelGateway,
        SyncNats,
        SyncProcess,
        SyncProcesses,
        SyncS3Bucket,
        SyncStack,
        SyncValkey,
        Template,
        Temporal,
        Valkey,
    )
    from harness_core.infrastructure.services import NatsMessage

__all__ = [
    "Clock",
    "Database",
    "Databases",
    "Evidence",
    "Fault",
    "How",
    "Mail",
    "Mailbox",
    "ModelGateway",
    "Nats",
    "NatsMessage",
    "Outage",
    "Outages",
    "Ports",
    "Process",
    "Processes",
    "S3Bucket",
    "Stack",
    "SyncDatabase",
    "SyncMailbox",
    "SyncModelGateway",
    "SyncNats",
    "SyncProcess",
    "SyncProcesses",
    "SyncS3Bucket",
    "SyncStack",
    "SyncValkey",
    "Template",
    "Temporal",
    "Valkey",
]

#: Those of other packages.
_ELSEWHERE: Final = {
    "Evidence": "harness_core.base.evidence",
    "Fault": "harness_core.doubles.model",
    "Mail": "harness_core.doubles.mail",
    "NatsMessage": "harness_core.infrastructure.services",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]) if name in _ELSEWHERE else handles, name)
