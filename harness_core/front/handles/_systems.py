"""What fixtures run at the moment, by name: what an outage can take away, and what is mended after a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness_core.base.errors import BadInput
from harness_core.base.reading import did_you_mean

if TYPE_CHECKING:
    from harness_core.system.parts import Parts


class Systems:
    """The systems that fixtures of one process of the run hold open, the oldest first."""

    def __init__(self) -> None:
        self._held: list[Parts] = []
        self._lasting: list[Parts] = []

    @contextmanager
    def holding(self, system: Parts, *, lasting: bool = True) -> Iterator[None]:
        """It runs during the block.

        Args:
            system: what runs.
            lasting: longer than a test, so that it is put right after each.
        """
        lists = (self._held, self._lasting) if lasting else (self._held,)
        for each in lists:
            each.append(system)
        try:
            yield
        finally:
            for each in lists:
                each.remove(system)

    def having(self, name: str) -> Parts:
        """The system that has a part of that name.

        Raises:
            BadInput: none has, or several have.
        """
        found = [each for each in self._held if name in each]
        if len(found) == 1:
            return found[0]
        where, known = "outage", sorted({name for each in self._held for name in each.names})
        if found:
            expected = "a name of one part alone: use the outage of its own handle"
            raise BadInput(where, key="name", found=name, expected=expected)
        expected = f"one of {', '.join(known)}" if known else "a fixture in this test that runs it"
        next_step = did_you_mean(name, known)
        raise BadInput(where, key="name", found=name, expected=expected, next_step=next_step)

    def put_right(self) -> list[str]:
        """Bring back what is down or paused and lasts; returns what of it had died, each in a sentence."""
        deaths: list[str] = []
        for system in self._lasting:
            system.loop.run(system.states)  # what ended a moment ago is known then
            deaths += system.deaths()
            system.loop.run(system.mend)
        return deaths
