"""What a stack is given besides its compose file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from harness_core.system.options import Options

__all__ = ["StackOptions", "usual_environment"]

#: What a program may need of the machine's own environment when the caller gives no other.
_INHERITED: Final = (
    *("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    "HARNESS_AGENT",  # the request of `harness mutate` (docs/how-to/mutation.md)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions(Options):
    """What a stack is given besides its compose file, and what may be asked of any environment.

    ``services`` is a provider of ``harness_core.infrastructure.services``.

    Attributes:
        bin: the folder of the commands of the system under test: ``{bin}``.
        environment: what every process has besides its own variables; the usual few when empty.
        urls: of the servers of provider ``external``: kind → URL or address.
        llm: mode of the model gateway; what the compose file says when empty.
        names: what tests call a service → its name in the compose file, where that is another.
    """

    bin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    urls: Mapping[str, str] = field(default_factory=dict, repr=False)
    llm: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


def usual_environment() -> dict[str, str]:
    """The usual few variables of the machine's own environment."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}
