"""What only a service can be made to do whose processes and files are of this machine."""

from __future__ import annotations

from harness_core.base.errors import HarnessError
from harness_core.system.parts import Part

__all__ = ["on_this_machine"]


def on_this_machine(part: Part) -> None:
    """Insist that a service is no container.

    Raises:
        HarnessError: it is one, and the test that asks does not say that it cannot do with one.
    """
    if part.place.container:
        raise HarnessError(
            f"reach into {part.name}",
            observed="it runs in a container",
            next_step="Mark the test not_in_containers, with the reason, and name it in README.md",
        )
