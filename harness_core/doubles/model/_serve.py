"""The gateway as a process: its socket, its ready line, its end."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as serve_http
from starlette.types import ASGIApp

from harness_core.base.bridge import blocking
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.evidence import Redactor
from harness_core.doubles.http import OwnHosts
from harness_core.doubles.model._app import gateway_app
from harness_core.doubles.model._backend import Backend
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._ledger import Ledger
from harness_core.doubles.model._prices import warm_price_table

#: The only address a gateway serves: a key-holding proxy must not be reachable from elsewhere.
_LOOPBACK: Final = "127.0.0.1"

#: Connections that may wait to be accepted.
_BACKLOG: Final = 256

#: After SIGTERM, connections still open (a hanging call, an idle client) get this long.
_DRAIN_S: Final = 0.2

#: A client that keeps its connection through a slow test must not find it closed.
_KEEP_ALIVE_S: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a gateway process is to run.

    Attributes:
        backend: its mode.
        models: models that may be asked for; empty for all.
        port: TCP port on 127.0.0.1; 0 for any. Unused with ``descriptor``.
        hosts: ``HOST:PORT`` that callers know it by, besides ``127.0.0.1`` and ``localhost``.
        descriptor: an inherited listening socket.
        redactor: knows further secrets; removes them from whatever is written.
        announce: print the ready line. It holds the key of the run and the control token, so a
            supervisor that knows both already, and keeps the output, turns it off.
    """

    backend: Backend
    api_key: str
    control_token: str
    budget_usd: float
    models: tuple[str, ...] = ()
    ledger: Path | None = None
    port: int = 0
    hosts: tuple[str, ...] = ()
    descriptor: int | None = None
    announce: bool = True
    redactor: Redactor = field(default_factory=Redactor, repr=False)


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        HarnessError: the port is taken, the descriptor is no socket, or the ledger cannot be
            written.
    """
    settings.redactor.add(settings.api_key, settings.control_token)
    with closing(_open_ledger(settings.ledger)) as ledger:
        with _listen(settings) as listener:
            own = OwnHosts(listener.getsockname()[1], further=settings.hosts)
            descriptor = listener.detach()
        desk = Desk(
            backend=settings.backend,
            ledger=ledger,
            budget=Budget(settings.budget_usd),
            api_key=settings.api_key,
            models=settings.models,
            redactor=settings.redactor,
        )
        app = gateway_app(desk, control_token=settings.control_token, own=own)
        await _serve_app(app, settings, descriptor)


async def _serve_app(app: ASGIApp, settings: Settings, descriptor: int) -> None:
    config = Config()
    config.bind = [f"fd://{descriptor}"]
    config.graceful_timeout = _DRAIN_S
    config.keep_alive_timeout = _KEEP_ALIVE_S
    config.loglevel = "WARNING"
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def stopped() -> None:
            await anext(signals)

        async def serve_app(*, task_status: trio.TaskStatus[list[str]]) -> None:
            # hypercorn types ASGI by its own names.
            asgi = cast("Any", app)
            await serve_http(asgi, config, shutdown_trigger=stopped, task_status=task_status)

        async with trio.open_nursery() as nursery:
            binds: list[str] = await nursery.start(serve_app)
            _announce(settings, url=binds[0])
            nursery.start_soon(blocking, warm_price_table)


def _listen(settings: Settings) -> socket.socket:
    if settings.descriptor is not None:
        return _taken_over(settings.descriptor)
    try:
        # Listening before anyone is told: a connection made at once waits in the backlog.
        return socket.create_server((_LOOPBACK, settings.port), backlog=_BACKLOG)
    except OSError as error:
        raise HarnessError(
            f"listen on {_LOOPBACK}:{settings.port}",
            observed=os.strerror(error.errno or 0),
            next_step="Use --port 0 for any free one",
        ) from error


def _taken_over(descriptor: int) -> socket.socket:
    action = f"take over descriptor {descriptor}"
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError as error:
        step = "Hand over a listening TCP socket under that number"
        raise HarnessError(action, observed=str(error), next_step=step) from error
    address = listener.getsockname()
    if listener.family != socket.AF_INET or address[0] != _LOOPBACK:
        listener.close()
        step = f"The gateway serves {_LOOPBACK} only; bind the socket there"
        raise HarnessError(action, observed=f"it is bound to {address}", next_step=step)
    return listener


def _open_ledger(path: Path | None) -> Ledger:
    try:
        return Ledger(path)
    except OSError as error:
        raise BadInput(
            "--ledger", found=str(path), expected=f"a file that can be written ({error.strerror})"
        ) from error


def _announce(settings: Settings, *, url: str) -> None:
    """Say where the gateway is: one JSON line on stdout."""
    line = {
        "url": url,
        "api_key": settings.api_key,
        "control_token": settings.control_token,
        "mode": settings.backend.name,
        "pid": os.getpid(),
    }
    if settings.announce:
        print(json.dumps(line), flush=True)  # noqa: T201 - this process's interface
