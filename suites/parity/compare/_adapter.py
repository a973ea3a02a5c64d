"""An adapter file: how a suite reaches a launcher that is a library, named on the command line."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_core.base.errors import BadInput

__all__ = ["load_backends"]


def load_backends(path: Path) -> Sequence[Any]:
    """Load an adapter file and take its ``BACKENDS``.

    Args:
        path: a Python file. Its folder is importable while it loads and afterwards, so that an
            adapter may lie beside what it adapts.

    Raises:
        BadInput: there is no such file, loading it fails, or it names no backends.
    """
    if path.suffix != ".py" or not path.is_file():
        raise BadInput(path, found="no such file", expected="a Python file that defines BACKENDS")
    name, load = f"adapter_{path.stem}", importlib.util
    spec = load.spec_from_file_location(name, path)  # lint: allow subject-internals: an adapter
    assert spec is not None
    assert spec.loader is not None
    module = load.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.parent.resolve()))  # lint: allow subject-internals: its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(
            path,
            found=f"{type(error).__name__}: {error}",
            expected="a file that can be imported",
            next_step="Install the launcher it adapts beside the tests, or put it on PYTHONPATH",
        ) from error
    backends = getattr(module, "BACKENDS", None)
    if not isinstance(backends, Sequence) or not backends:
        raise BadInput(path, key="BACKENDS", found=backends, expected="a list of backends")
    names = [getattr(backend, "name", None) for backend in backends]
    if None in names or len(set(names)) < len(names):
        raise BadInput(path, key="BACKENDS", found=names, expected="one name for each backend")
    return backends
