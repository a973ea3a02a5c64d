"""The process of the page: a listening socket as descriptor 3, SIGTERM ends it at once."""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Final

import trio

from harness_core.doubles.http import OwnHosts
from harness_core.doubles.serving import serve_http
from harness_core.front.live._app import live_app
from harness_core.front.live._board import Board
from harness_core.front.live._open import TOKEN_VARIABLE

#: The first descriptor that is handed over (``sd_listen_fds``).
_LISTENER: Final = 3


async def _serve(board: Board, *, token: str, port: int) -> None:
    app = live_app(board, token=token, own=OwnHosts(port), port=port)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(board.renew)
        # Nothing here needs an orderly end: the signal's own action is what ends it.
        await serve_http(app, _LISTENER, until=trio.sleep_forever)


def main() -> None:
    """Serve until a signal."""
    path, holder, evidence, title = sys.argv[1:]
    token = os.environ.pop(TOKEN_VARIABLE)
    with socket.socket(fileno=os.dup(_LISTENER)) as listener:
        port = listener.getsockname()[1]
    board = Board(Path(path), holder=int(holder), evidence=Path(evidence), title=title)
    trio.run(partial(_serve, board, token=token, port=port))


if __name__ == "__main__":
    main()
