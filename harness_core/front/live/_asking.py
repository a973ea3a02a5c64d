"""One question to the control socket of what is held, from the page's loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from harness_core.base.bridge import blocking
from harness_core.system.staging import ask

__all__ = ["ACT_S", "Holder"]

#: What is looked at comes from memory, or from servers that answer at once.
_LOOK_S: Final = 10.0

#: A part that is started or stopped: the longest grace of a part is 40 s, its boot may take more.
ACT_S: Final = 300.0


class Holder:
    """What holds the system, behind its control socket.

    Args:
        path: the socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def ask(self, word: str, *, seconds: float = _LOOK_S, **about: str) -> Any:
        """Ask for one thing.

        Raises:
            HarnessError: it refuses, does not answer in time, or has ended; ``observed`` says which.
        """
        return await blocking(partial(ask, self._path, word, seconds=seconds, **about))
