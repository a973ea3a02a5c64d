"""The error that names the culprit when a stack does not come up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from harness_core.base.errors import ChildExited, HarnessError, NotReady
from harness_core.system.parts._order import everything_below
from harness_core.system.parts._part import Part

__all__ = ["ServiceFailed", "culprit"]


class ServiceFailed(HarnessError):  # noqa: N818
    """A service of a stack did not come up.

    Attributes:
        service: which one; not one of those that only waited for it.
        stage: the stage of its start that it did not get past: ``start``, ``port``, ``owner``,
            ``health``, ``exit``.
    """

    def __init__(  # noqa: PLR0913 - every field is read by a test or a report
        self,
        action: str,
        *,
        observed: str,
        service: str = "",
        stage: str = "",
        next_step: str = "",
        tail: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        super().__init__(action, observed=observed, next_step=next_step, tail=tail, log=log)
        self.service = service
        self.stage = stage


async def culprit(
    part: Part,
    error: HarnessError,
    *,
    parts: Mapping[str, Part],
    waits: Mapping[str, Collection[str]],
    title: str,
) -> ServiceFailed:
    """Who is to blame that ``part`` did not come up: itself, or something that it needs.

    Args:
        part: the one that failed.
        error: how.
        parts: all parts.
        waits: for each, what it waits for.
        title: what the message calls the whole.
    """
    for name in reversed(everything_below(part.name, waits)):
        other = parts[name]
        await other.refresh()
        death = other.death()
        if death is not None:
            blamed = _failed(other, death, title=title)
            blamed.add_note(f"{part.name}, which needs {name}, did not come up: {error}")
            return blamed
    return _failed(part, error, title=title)


def _failed(part: Part, error: HarnessError, *, title: str) -> ServiceFailed:
    stage = error.stage if isinstance(error, NotReady) and error.stage else part.stage
    observed = error.observed
    if isinstance(error, NotReady):
        observed = f"it does not get past stage {stage!r}: {observed}"
    elif isinstance(error, ChildExited):
        observed = f"it {observed.removeprefix(f'{part.name} ')}"
        if stage != "exit":
            observed += f" before it got past stage {stage!r}"
    elif error.action == f"start {part.name}":
        observed = f"at stage {stage!r}: {observed}"
    else:
        observed = f"at stage {stage!r}: cannot {error.action}: {observed}"
    logs = part.logs()
    failed = ServiceFailed(
        f"start {part.name} of {title}",
        observed=observed,
        service=part.name,
        stage=stage,
        next_step=error.next_step or "Read its log",
        tail=error.tail,
        log=error.log or (logs[-1] if logs else None),
    )
    failed.__cause__ = error
    return failed
