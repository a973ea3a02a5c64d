"""A connection whose server falls silent."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import trio

from harness_core.infrastructure.databases import Database
from harness_core.infrastructure.services import PostgresService

pytestmark = pytest.mark.real


async def test_a_server_silent_after_the_handshake_holds_no_caller(
    postgres: PostgresService,
) -> None:
    """The first statement of all is asked while the connection is made; it can be given up, too."""
    url = urlsplit(postgres.url())
    asked = trio.Event()

    async def serve(client: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream(str(url.hostname), int(url.port or 0))
        async with server, trio.open_nursery() as nursery:

            async def answers() -> None:
                async for chunk in server:
                    await client.send_all(chunk)

            nursery.start_soon(answers)
            async for chunk in client:
                if chunk.startswith(b"Q"):
                    asked.set()
                else:
                    await server.send_all(chunk)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        port = listener.socket.getsockname()[1]
        through = postgres.url().replace(f":{url.port}", f":{port}")
        async with Database(through) as database, trio.open_nursery() as asking:
            asking.start_soon(database.rows, "select 1")
            await asked.wait()
            asking.cancel_scope.cancel()
        nursery.cancel_scope.cancel()

    assert asking.cancel_scope.cancelled_caught
