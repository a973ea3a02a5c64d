"""``name:port`` of a compose file, where there is no network of containers.

Inside one, ``worker:8001`` is the service ``worker``. Without one it is a leased port of
127.0.0.1, so every such token in environments and command lines is rewritten, whole tokens only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_core.base.errors import BadInput

__all__ = ["Rewriter"]


class Rewriter:
    """Rewrites host tokens.

    Args:
        path: the compose file, for messages.
        ports: the ports of each service inside the stack.
        addresses: where each service is in truth, ``host:port``; stands for its first port.
    """

    def __init__(
        self,
        path: Path,
        *,
        ports: Mapping[str, Sequence[int]],
        addresses: Mapping[str, str],
    ) -> None:
        self._path = path
        self._ports = ports
        self._addresses = addresses
        # The longest name first: `worker` is the end of `controller-worker`.
        names = sorted(ports, key=len, reverse=True)
        known = "|".join(re.escape(name) for name in names)
        self._token = re.compile(rf"(?<![\w.-])({known}):(\d+)(?![\w.])")

    def text(self, text: str, *, key: str) -> str:
        """``text`` with its tokens rewritten.

        Args:
            text: a value or a word.
            key: where it stands, for messages.

        Raises:
            BadInput: a service of the file with a port that it does not have.
        """

        def replace(match: re.Match[str]) -> str:
            name, port = match[1], int(match[2])
            ports = self._ports[name]
            if not ports or port != ports[0]:
                has = f"{name}:{ports[0]}" if ports else f"another host: {name} has no port"
                raise BadInput(self._path, key=key, found=match[0], expected=has)
            return self._addresses[name]

        return self._token.sub(replace, text)
