"""build123d without scikit-learn, which it imports for one function and which takes a quarter of its time."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_NAMES = ("sklearn", "sklearn.cluster")


def import_build123d() -> None:
    """Import build123d; scikit-learn is imported when its clustering is asked for, or by name."""
    if any(name in sys.modules for name in _NAMES):
        import build123d  # noqa: F401

        return
    package, cluster = (ModuleType(name) for name in _NAMES)
    vars(cluster)["DBSCAN"] = _clustering
    sys.modules |= zip(_NAMES, (package, cluster), strict=True)
    try:
        import build123d  # noqa: F401
    finally:
        # Whoever imports it from here on gets the library itself.
        for name in _NAMES:
            del sys.modules[name]


def _clustering(*arguments: Any, **options: Any) -> Any:
    from sklearn.cluster import DBSCAN

    return DBSCAN(*arguments, **options)
