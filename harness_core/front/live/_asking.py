"""One question to the control socket of what is held, from the page's loop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience

__all__ = ["Holder"]

#: What is looked at comes from memory, or from servers that answer at once.
LOOK_S: Final = 10.0

#: A part that is started or stopped: the longest grace of a part is 40 s, its boot may take more.
ACT_S: Final = 300.0

_PIECE_BYTES: Final = 65_536

#: An answer of which more is not read.
_ANSWER_BYTES: Final = 16 * 1_048_576


class Holder:
    """What holds the system, behind its control socket.

    Args:
        path: the socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def ask(self, word: str, *, seconds: float = LOOK_S, **about: str) -> Any:
        """Ask for one thing.

        Raises:
            HarnessError: it refuses, does not answer in time, or has ended.
        """
        request = json.dumps({"ask": word, **about}).encode() + b"\n"
        try:
            with trio.fail_after(patience(seconds)):
                answer = json.loads(await self._exchange(request))
        except trio.TooSlowError as error:
            raise HarnessError(
                word, observed=f"no answer within {patience(seconds):g} s"
            ) from error
        except (OSError, trio.BrokenResourceError, ValueError) as error:
            raise HarnessError(word, observed="what holds the system has ended") from error
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer["answer"]

    async def _exchange(self, request: bytes) -> bytes:
        # By its folder: its whole path may be longer than a socket's may be.
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            stream = await trio.open_unix_socket(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
        async with stream:
            await stream.send_all(request)
            answer = b""
            while not answer.endswith(b"\n") and len(answer) < _ANSWER_BYTES:
                piece = await stream.receive_some(_PIECE_BYTES)
                if not piece:
                    break
                answer += piece
            return answer


class Refused(HarnessError):  # noqa: N818 - what became of the request
    """It answered with an error, which is a sentence already."""

    def __init__(self, sentence: str) -> None:
        super().__init__("ask", observed=sentence)
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence
