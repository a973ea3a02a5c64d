"""Ports for the length of a test."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from harness_core.ports import PortLease, lease_port, listening_socket


class Ports:
    """Leases ports of 127.0.0.1, and gives all of them back at the end of its block."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._held.close()

    def lease(self, port: int | None = None) -> PortLease:
        """A port that is no other's; ``hand_over()`` lets go of its socket and answers the number.

        Args:
            port: exactly this one, for a program that can use no other.

        Raises:
            PortTaken: another process has it; names that.
        """
        return self._held.enter_context(lease_port(port=port))

    def socket(self) -> socket.socket:
        """A socket that listens already, for a program that takes one over: no port is free a moment."""
        return self._held.enter_context(listening_socket())
