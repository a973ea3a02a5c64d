"""What the providers have to know of a kind of server."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness_core.infrastructure.containers import ContainerSpec, ImageChoice
from harness_core.infrastructure.services._readiness import Readiness

if TYPE_CHECKING:
    from harness_core.process import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """A server as a process of this machine.

    Args:
        argv: its command line.
        env: its environment, besides a home of its own.
        home: directory of its own.
        ready: waits until it serves, where there is a better way than to ask it over TCP; raises
            when it does not.
        user: numeric id of the user to run it as, when that is not ourselves.
        stop_signal: what asks it to end.
        clean_up: removes what one that was killed has left; called before each start, too.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path
    ready: Callable[[Child], Awaitable[None]] | None = None
    user: int | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    clean_up: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One kind of server.

    Args:
        name: e.g. ``"s3"``.
        readiness: when it serves.
        local: given a port, prepares what a process needs, for as long as the block lasts.
        images: the images that have one.
        container: what to run in a container, given the image.
        external: ``host:port`` of an external one; empty when there is none.
    """

    name: str
    readiness: Readiness
    local: Callable[[int], AbstractAsyncContextManager[ServerCommand]]
    images: ImageChoice
    container: Callable[[str], ContainerSpec]
    external: str
