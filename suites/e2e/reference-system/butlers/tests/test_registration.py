"""A butler that stops while it registers."""

import asyncio
from types import SimpleNamespace
from typing import Any

from butlers.registration import Registration

#: A stop that waits for nothing.
STOPS_S = 10.0


def test_a_stop_ends_a_call_that_breaks_meanwhile() -> None:
    """A cancelled call may end in an error of its own; the registration ends all the same."""
    calling = asyncio.Event()

    async def on_register(**_: Any) -> None:
        first = not calling.is_set()
        calling.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            if first:
                raise ConnectionResetError from cancelled
            raise

    config = SimpleNamespace(
        name="general", url="", description="", capabilities=(), allowed_sources=(),
        switchboard=SimpleNamespace(url="", heartbeat_s=3600.0),
    )  # fmt: skip
    log = SimpleNamespace(info=lambda *_, **__: None, warning=lambda *_, **__: None)
    butler: Any = SimpleNamespace(config=config, on_register=on_register, log=log)

    async def stop() -> bool:
        registration = Registration(butler)
        registration.start()
        await calling.wait()
        stopping = asyncio.create_task(registration.stop())
        done, _ = await asyncio.wait([stopping], timeout=STOPS_S)
        stopping.cancel()
        return bool(done)

    assert asyncio.run(stop()), "a registration that is stopped ends, and this one goes on"
