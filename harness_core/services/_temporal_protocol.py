"""Enough of Temporal's gRPC to know that a server answers: one call, on a connection of its own.

A server that accepts connections may not serve a namespace yet. Asking for its description proves
protocol, storage and namespace at once, without the SDK, which retries for seconds by itself.
Source: gRPC over HTTP/2 (framing, trailers), temporal.api.workflowservice.v1.
"""

from __future__ import annotations

import struct
from typing import Final
from urllib.parse import unquote

import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from harness_core.errors import HarnessError
from harness_core.services._connection import connect

__all__ = ["TemporalRefusedError", "describe_namespace"]

_PATH: Final = "/temporal.api.workflowservice.v1.WorkflowService/DescribeNamespace"

#: DescribeNamespaceRequest: field 1, length-delimited.
_NAMESPACE_FIELD: Final = 0x0A

#: The length of a name is then one byte of protobuf.
_NAMESPACE_BYTES: Final = 127

_READ_BYTES: Final = 65_536

#: Reads of one answer, which has some hundred bytes.
_READS: Final = 100


class TemporalRefusedError(HarnessError):
    """The server answered, with an error.

    Attributes:
        status: of gRPC: 5 for a namespace that is not there, 14 for a server that cannot serve.
    """

    def __init__(self, *, status: int, message: str) -> None:
        super().__init__("talk to Temporal", observed=f"it answers status {status}: {message}")
        self.status = status


async def describe_namespace(address: str, namespace: str) -> None:
    """Ask for the description of a namespace.

    Args:
        address: ``host:port``.
        namespace: at most 127 bytes.

    Raises:
        OSError: nobody listens, the connection broke, or what answers there is no gRPC.
        TemporalRefusedError: it answers, and does not serve the namespace.
    """
    name = namespace.encode()[:_NAMESPACE_BYTES]
    message = bytes((_NAMESPACE_FIELD, len(name))) + name
    async with await connect(address) as stream:
        try:
            found = await _call(stream, address, struct.pack(">BI", 0, len(message)) + message)
        except (trio.BrokenResourceError, ProtocolError) as error:
            reason = f"what listens there broke off: {str(error) or type(error).__name__}"
            raise ConnectionResetError(reason) from error
    if (status := int(found.get("grpc-status", "2"))) != 0:
        raise TemporalRefusedError(status=status, message=unquote(found.get("grpc-message", "")))


async def _call(stream: trio.SocketStream, address: str, framed: bytes) -> dict[str, str]:
    """Headers and trailers of the answer, together."""
    connection = H2Connection(H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    number = connection.get_next_available_stream_id()
    connection.send_headers(
        number,
        (
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", address),
            (":path", _PATH),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ),
    )
    connection.send_data(number, framed, end_stream=True)
    found: dict[str, str] = {}
    for _ in range(_READS):
        await stream.send_all(connection.data_to_send())
        if not (data := await stream.receive_some(_READ_BYTES)):
            break
        for event in connection.receive_data(data):
            if isinstance(event, ResponseReceived | TrailersReceived):
                found |= {str(key): str(value) for key, value in event.headers}
            elif isinstance(event, DataReceived):
                connection.acknowledge_received_data(event.flow_controlled_length, number)
            elif isinstance(event, StreamEnded):
                return found
            elif isinstance(event, StreamReset | ConnectionTerminated):
                break
    raise ConnectionResetError("the server closed the connection without an answer")
