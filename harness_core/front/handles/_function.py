"""A function that a file names as ``module:function``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from harness_core.base.errors import BadInput


def function_of(name: str, *, where: str | Path, key: str) -> Callable[[str], object]:
    """Import it.

    Args:
        name: ``module:function``.
        where: what names it, for the error.
        key: the key there.

    Raises:
        BadInput: there is no such module, or no such function in it.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        expected = f"module:function that can be imported ({error})"
        raise BadInput(where, key=key, found=name, expected=expected) from error
    if not callable(found):
        raise BadInput(where, key=key, found=name, expected="a function, or what can be called")
    function: Callable[[str], object] = found
    return function
