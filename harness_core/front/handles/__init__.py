"""What the fixtures of ``harness_core.front.fixtures`` give: handles for code with and without a loop.

Each is imported when it is first asked for, since each needs an extra of its own.

- ``_database.py``: a database of a test, and what databases are made from; ``_function.py``: a function
  that a file names.
- ``_processes.py``: starts processes; ``_process.py``: one of them; ``_keeper.py``: holds them.
- ``_stack.py``: the services of a compose file. ``_s3.py``: a bucket. ``_temporal.py``: a task queue.
- ``_valkey.py``: keys. ``_nats.py``: messages and streams.
- ``_model.py``: a model. ``_mail.py``: mails that went out. ``_clock.py``: the time of day.
- ``_ports.py``: leases of ports. ``_outage.py``: what is away for a block.
- ``_systems.py``: what fixtures run at the moment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from harness_core.front.handles._clock import Clock
    from harness_core.front.handles._database import (
        Database,
        Databases,
        SyncDatabase,
        Template,
        open_databases,
    )
    from harness_core.front.handles._mail import Mailbox, SyncMailbox
    from harness_core.front.handles._model import ModelGateway, SyncModelGateway
    from harness_core.front.handles._nats import Nats, SyncNats, open_subjects
    from harness_core.front.handles._outage import How, Outage, Outages
    from harness_core.front.handles._ports import Ports
    from harness_core.front.handles._process import Process, SyncProcess
    from harness_core.front.handles._processes import Processes, SyncProcesses, open_processes
    from harness_core.front.handles._s3 import S3Bucket, SyncS3Bucket, open_bucket
    from harness_core.front.handles._stack import Stack, SyncStack
    from harness_core.front.handles._systems import Systems
    from harness_core.front.handles._temporal import Temporal
    from harness_core.front.handles._valkey import SyncValkey, Valkey, open_keys

__all__ = [
    "Clock",
    "Database",
    "Databases",
    "How",
    "Mailbox",
    "ModelGateway",
    "Nats",
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
    "Systems",
    "Template",
    "Temporal",
    "Valkey",
    "open_bucket",
    "open_databases",
    "open_keys",
    "open_processes",
    "open_subjects",
]

#: Name → the module that has it.
_HOMES: Final = {
    "Clock": "_clock",
    "Database": "_database",
    "Databases": "_database",
    "How": "_outage",
    "Mailbox": "_mail",
    "ModelGateway": "_model",
    "Nats": "_nats",
    "Outage": "_outage",
    "Outages": "_outage",
    "Ports": "_ports",
    "Process": "_process",
    "Processes": "_processes",
    "S3Bucket": "_s3",
    "Stack": "_stack",
    "SyncDatabase": "_database",
    "SyncMailbox": "_mail",
    "SyncModelGateway": "_model",
    "SyncNats": "_nats",
    "SyncProcess": "_process",
    "SyncProcesses": "_processes",
    "SyncS3Bucket": "_s3",
    "SyncStack": "_stack",
    "SyncValkey": "_valkey",
    "Systems": "_systems",
    "Template": "_database",
    "Temporal": "_temporal",
    "Valkey": "_valkey",
    "open_bucket": "_s3",
    "open_databases": "_database",
    "open_keys": "_valkey",
    "open_processes": "_processes",
    "open_subjects": "_nats",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
