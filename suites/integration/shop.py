"""``manufacturing_config.yaml`` of a stack, as whoever runs it edits it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from harness_core.base.errors import HarnessError
from harness_core.front.skips import not_run
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.here import on_this_machine
from suites.integration.stack import layout_of

__all__ = ["MILL_MM", "dollars_times", "tighter_limits"]

#: Along x, of the mill of :func:`tighter_limits`.
MILL_MM: Final = 35


@asynccontextmanager
async def dollars_times(stack: Stack, subject: Subject, factor: float) -> AsyncIterator[None]:
    """All amounts of the configuration are other ones for as long as the block lasts.

    Args:
        stack: whose worker it is, one that may be broken.
        subject: says where its file is.
        factor: of each number whose key says ``_usd``.

    Raises:
        HarnessError: there is no such file, or none with an amount.
    """

    def change(document: Any) -> Any:
        other = _times(document, factor)
        if other == document:
            raise HarnessError(
                "edit the configuration of the worker",
                observed="it has no number whose key says _usd",
                next_step="Read the contract: the unit is in the key",
            )
        return other

    async with _edited(stack, subject, change):
        yield


@asynccontextmanager
async def tighter_limits(stack: Stack, subject: Subject) -> AsyncIterator[None]:
    """The mill takes :data:`MILL_MM` along x, and printing has no limits, for as long as the block lasts.

    Args:
        stack: whose worker it is, one that may be broken.
        subject: says where its file is.
    """

    def change(document: Any) -> Any:
        other = copy.deepcopy(document)
        try:
            other["methods"]["cnc"]["limits"]["machine_mm"][0] = MILL_MM
            del other["methods"]["print"]["limits"]
        except (KeyError, TypeError, IndexError):
            not_run("subject", "its configuration has no limits of the methods cnc and print")
        return other

    async with _edited(stack, subject, change):
        yield


@asynccontextmanager
async def _edited(
    stack: Stack, subject: Subject, change: Callable[[Any], Any]
) -> AsyncIterator[None]:
    """The worker is killed and started before the block and after it: a product may read the file once."""
    name = layout_of(subject).configuration
    file = Path(stack["worker"].environment.get(name, ""))
    if not name or not stack["worker"].environment.get(name):
        not_run("subject", "its worker's environment names no manufacturing_config.yaml")
    on_this_machine(stack["worker"])
    if not file.is_file():
        raise HarnessError(
            "edit the configuration of the worker",
            observed=f"{name} names {file}, where no file is",
            next_step="Name the variable in the subject file: [stack] configuration",
        )
    kept = file.read_bytes()
    other = change(yaml.safe_load(kept))
    try:
        # Whoever runs the shop writes this file; there is no API for it.
        data = yaml.safe_dump(other, sort_keys=False).encode()
        file.write_bytes(data)  # lint: allow local-write: an operator's file
        async with stack.outage("worker", "kill"):
            pass
        yield
    finally:
        file.write_bytes(kept)  # lint: allow local-write: an operator's file
        async with stack.outage("worker", "kill"):
            pass


def _times(value: Any, factor: float, *, is_usd: bool = False) -> Any:
    """A document with its amounts of money multiplied."""
    if isinstance(value, dict):
        return {key: _times(each, factor, is_usd="_usd" in str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_times(each, factor, is_usd=is_usd) for each in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value * factor if is_usd and is_number else value
