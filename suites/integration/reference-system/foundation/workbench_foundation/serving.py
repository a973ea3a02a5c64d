"""An app on a host and port, until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable

from workbench_foundation import log, tracing
from workbench_foundation.errors import ConfigError
from workbench_foundation.hosts import OwnHost, own_hosts
from workbench_foundation.keys import App
from workbench_foundation.settings import Environment

#: Requests under way at SIGTERM get this long.
_GRACE_S = 2

#: A connection that is idle is kept for so long: longer than clients keep theirs (httpx: 5 s), for who closes
#: in the moment in which the other sends loses a request.
_IDLE_S = 15


def run_service(service: str, make: Callable[[], Awaitable[App]]) -> int:
    """Serve what ``make`` gives on ``--host`` and ``--port``; the exit status.

    Args:
        service: its name in logs.
        make: run in the loop that serves; raises ConfigError for a bad setting.
    """
    parser = argparse.ArgumentParser(prog=f"workbench-{service}")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    log.start(service)
    tracing.start(service)
    try:
        asyncio.run(_serve(make, host=options.host, port=options.port))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    finally:
        tracing.stop()
    return 0


async def _serve(make: Callable[[], Awaitable[App]], *, host: str, port: int) -> None:
    import uvicorn

    own = own_hosts(Environment(), host=host, port=port)
    config = uvicorn.Config(
        OwnHost(tracing.planted(await make()), own=own),
        http="h11",  # the other one hides the host that a target names
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        ws="none",
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    with contextlib.suppress(asyncio.CancelledError):
        await uvicorn.Server(config).serve()
