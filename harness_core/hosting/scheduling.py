"""Which worker runs which tests: those that share something costly stay together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

__all__ = ["TogetherScheduling"]


class TogetherScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out tests one at a time, but for groups that one worker runs as a whole.

    A fixture of session scope lives once in every worker that runs a test with it. When it is a
    whole ecosystem, its tests belong on one worker; all others go to whoever is free.

    Args:
        config: of the controller.
        log: of xdist.
        together: group → beginnings of the test ids that belong to it, from the root on.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        *,
        together: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(config, log)
        self._together = together

    def _split_scope(self, nodeid: str) -> str:
        for group, beginnings in self._together.items():
            if nodeid.startswith(tuple(beginnings)):
                return group
        return nodeid
