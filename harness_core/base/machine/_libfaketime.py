"""Where libfaketime is: a library that gives a process another time of day."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, Unavailable

_VARIABLE: Final = "HARNESS_LIBFAKETIME"

#: Where Debian, Fedora, Arch and a ``make install`` put it; the one for threads before the other.
_PLACES: Final = (
    "/usr/lib/*/faketime",
    "/usr/lib64/faketime",
    "/usr/lib/faketime",
    "/usr/local/lib/faketime",
)
_NAMES: Final = ("libfaketimeMT.so.1", "libfaketime.so.1")


def find_libfaketime() -> Path:
    """The library, for ``LD_PRELOAD``.

    Raises:
        BadInput: ``HARNESS_LIBFAKETIME`` names no file.
        Unavailable: there is none on this machine.
    """
    if given := os.environ.get(_VARIABLE):
        if not Path(given).is_file():
            raise BadInput("environment", key=_VARIABLE, found=given, expected="a library")
        return Path(given)
    for place in _PLACES:
        for name in _NAMES:
            found = next(Path("/").glob(f"{place.lstrip('/')}/{name}"), None)
            if found is not None:
                return found
    raise Unavailable(
        "set the clock of a process",
        observed="libfaketime is not on this machine",
        next_step=f"apt-get install faketime, or name the library in {_VARIABLE}",
    )
