"""What a launcher prints, logs by a logger of its own and puts into temporary files, for all to see.

A launcher that is a library shares the process of its test; what a program prints, its adapter keeps.
"""

from __future__ import annotations

import io
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

from suites.parity.world import Keep, World

__all__ = ["overheard"]


@contextmanager
def overheard(world: World) -> Iterator[None]:
    """Keep what is printed in this block, and what is logged to whichever logger, debugging included.

    Temporary files are those of the world.
    """
    stream = io.TextIOWrapper(
        _Output(world.output), encoding="utf-8", errors="surrogateescape", write_through=True
    )
    root, keep = logging.getLogger(), Keep(world.log)
    level, folder = root.level, tempfile.tempdir
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    if world.temporary:
        tempfile.tempdir = str(world.temporary[0])
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            yield
    finally:
        tempfile.tempdir = folder
        root.setLevel(level)
        root.removeHandler(keep)


class _Output(io.BufferedIOBase):
    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._texts = texts

    def writable(self) -> bool:
        return True

    def write(self, content: ReadableBuffer, /) -> int:
        printed = bytes(content)
        self._texts.append(printed.decode(errors="surrogateescape"))
        return len(printed)
