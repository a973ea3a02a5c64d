"""Names of sockets in the file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["short_name"]

#: ``sun_path`` on Linux holds 108 bytes with the final zero.
_PATH_BYTES: Final = 107


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name of a socket that is short enough for the kernel, during the block.

    Where its path is too long, it is named by its folder's descriptor (Linux).
    """
    if len(os.fsencode(path)) <= _PATH_BYTES:
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
