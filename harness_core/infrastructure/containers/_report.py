"""What ``harness doctor`` reports of the container engine: which, whence its images, what is missing."""

from __future__ import annotations

from typing import Final

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.containers._bootstrap import bootstrap_reason
from harness_core.infrastructure.containers._build import image_rows
from harness_core.infrastructure.containers._client import engine_client, engine_errors
from harness_core.infrastructure.containers._recipes import PUBLIC_BASE
from harness_core.infrastructure.engine import Engine, find_engine

#: A registry that can be reached answers a question about one image in a second or two.
_REGISTRY_S: Final = 10.0


def engine_report() -> tuple[str, ...]:
    """One line for each thing that matters; blocks, and asks the registry.

    Raises:
        Unavailable: no engine answers.
    """
    engine = find_engine()
    where = "this machine" if engine.local else f"elsewhere, its ports are reached at {engine.host}"
    lines = [f"engine: {engine}, on {where}"]
    try:
        rows = image_rows(engine)
        pull = _pull_reason(engine)
    except HarnessError as error:
        return (*lines, str(error))
    missing = [row.reference.partition(":")[0] for row in rows if row.state == "missing"]
    if not pull:
        lines.append("images: can be pulled")
    else:
        lines.append(f"images: cannot be pulled ({pull})")
    if not missing:
        lines.append("images of the harness: all built, and current")
        return tuple(lines)
    lines.append(f"images of the harness: missing {', '.join(missing)}")
    reason = bootstrap_reason() if pull else ""
    how = f"cannot be built yet: {reason}" if reason else "to build them: harness images build"
    return (*lines, f"{'':24}{how}")


def _pull_reason(engine: Engine) -> str:
    """Why nothing can be pulled; empty when the registry answers."""
    with engine_client(engine, timeout_s=_REGISTRY_S) as client:
        try:
            with engine_errors(f"ask the registry for {PUBLIC_BASE}"):
                client.images.get_registry_data(PUBLIC_BASE)
        except HarnessError as error:
            return error.observed
    return ""
