"""Opens a stack by one of the drivers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from harness_core.base.errors import BadInput
from harness_core.system.compose._compose import read_compose
from harness_core.system.compose._docker import open_docker_stack
from harness_core.system.compose._external import external_variables
from harness_core.system.compose._handle import Stack
from harness_core.system.compose._keys import check_keys
from harness_core.system.compose._local import open_local_stack
from harness_core.system.compose._options import StackOptions

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.process import Run

__all__ = ["DRIVERS", "open_stack"]

#: A new driver is one row.
DRIVERS = {"docker": open_docker_stack, "local": open_local_stack}


def open_stack(
    run: Run,
    compose: Path,
    *,
    evidence: Evidence,
    driver: str = "local",
    options: StackOptions | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> AbstractAsyncContextManager[Stack]:
    """Boot a stack from nothing; take it down, with everything it made, at the end of the block.

    Every service starts as soon as what it waits for is there, the others side by side. Ports,
    database, buckets and directories are fresh.

    Args:
        run: the run it belongs to and dies with.
        compose: the compose file.
        evidence: directory for the logs of all services, written as they come.
        driver: a key of :data:`DRIVERS`.
        options: what it is given besides the file.
        say: gets a line for each step of the boot.

    Raises:
        BadInput: unknown driver, or a mistake in the compose file: names service and key. So is a key
            of a server of ours that is missing, too short, or not the one its users hold.
        ServiceFailed: a service did not come up: names the culprit, not those that waited for it,
            with stage, last words and log.
    """
    opener = DRIVERS.get(driver)
    if opener is None:
        expected = f"one of {', '.join(sorted(DRIVERS))}"
        raise BadInput("open_stack", key="driver", found=driver, expected=expected)
    options = options or StackOptions()
    read = read_compose(compose, variables=options.environment)
    external = driver == "local" and options.services == "external"
    if external:
        theirs = external_variables(run, read, options.urls)
        read = read_compose(compose, variables={**options.environment, **theirs})
    check_keys(read, external=external)
    return opener(run, read, options=options, evidence=evidence, say=say)
