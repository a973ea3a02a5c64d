"""A place of a test's own on a Temporal server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporal:
    """Where a test's workflows run; given by the fixture ``temporal``.

    Attributes:
        address: ``127.0.0.1:PORT``, for ``temporalio.client.Client.connect``.
        namespace: there.
        task_queue: of this test alone.
    """

    address: str
    namespace: str
    task_queue: str

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: ``TEMPORAL_ADDRESS``, ``TEMPORAL_NAMESPACE``, ``TEMPORAL_TASK_QUEUE``."""
        return {
            "TEMPORAL_ADDRESS": self.address,
            "TEMPORAL_NAMESPACE": self.namespace,
            "TEMPORAL_TASK_QUEUE": self.task_queue,
        }
