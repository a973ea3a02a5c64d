"""Everything outside that a launcher touches, in one place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bot_bottle.hidden import Hidden
from bot_bottle.run import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host a launcher runs on.

    `home` holds `.bot-bottle`; `environ` is the host's environment, never changed; `prompt` shows
    its argument and returns what was typed; `hidden` are the values that no message repeats.
    """

    home: Path
    environ: Mapping[str, str] = field(repr=False)
    prompt: Callable[[str], str]
    runner: Runner
    log: logging.Logger
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    hidden: Hidden = field(default_factory=Hidden, repr=False)

    @property
    def root(self) -> Path:
        """Where this launcher keeps its files."""
        return self.home / ".bot-bottle"

    @property
    def owner(self) -> str:
        """By this a backend distinguishes this launcher's guests from those of another home."""
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:12]
