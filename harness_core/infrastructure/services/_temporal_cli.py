"""One question to a Temporal server, by Temporal's own command line.

A server that accepts connections may not serve a namespace yet. Asking for its description proves
protocol, storage and namespace at once. The SDK would retry for seconds; a command is asked once.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import trio

from harness_core.base import limits
from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services._readiness import connect

#: Neither the user's profiles nor proxies: what is asked is the address.
_ENVIRONMENT: Final = {"HOME": "/nonexistent"}


class TemporalRefusedError(HarnessError):
    """What listens does not serve the namespace; ``observed`` is Temporal's own message."""

    def __init__(self, message: str) -> None:
        super().__init__("talk to Temporal", observed=message)


async def describe_namespace(address: str, namespace: str, *, program: Path) -> None:
    """Ask for the description of a namespace; takes some 50 ms.

    Args:
        address: ``host:port``.
        namespace: its name.
        program: the command line.

    Raises:
        OSError: no server listens.
        TemporalRefusedError: it is no Temporal, or does not serve the namespace.
    """
    await (await connect(address)).aclose()  # the command takes longer to find no server
    words = ("operator", "namespace", "describe", "--namespace", namespace, "--address", address)
    done = await trio.run_process(
        # Should we be killed meanwhile, it ends by itself.
        [program, *words, "--command-timeout", f"{limits.TEMPORAL_READY_S:g}s"],
        env=_ENVIRONMENT,
        check=False,
        capture_stdout=True,
        stderr=subprocess.STDOUT,
        deliver_cancel=_end,
    )
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace").strip()
        raise TemporalRefusedError(output.partition("\n")[0] or f"exit status {done.returncode}")


async def _end(asked: trio.Process) -> None:
    """It has nothing to put in order."""
    asked.kill()
