"""Which capabilities are tried together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harness_core.system.claims import missing_keys
from harness_core.system.subject import Subject
from harness_core.system.suites import Capability, Suite

__all__ = ["Together", "plan_runs", "untriable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Capabilities that one pytest tries.

    Attributes:
        capabilities: what is tried.
        pretended: of these, what the subject file does not claim and this run does.
    """

    capabilities: tuple[Capability, ...]
    pretended: tuple[str, ...] = ()


def untriable(suite: Suite, subject: Subject) -> dict[str, str]:
    """Capability → why it cannot be tried with this file."""
    missing = {each.name: missing_keys(subject, each) for each in suite.capabilities}
    file = subject.path.name
    return {name: f"needs {', '.join(keys)} in {file}" for name, keys in missing.items() if keys}


def plan_runs(suite: Suite, subject: Subject, *, asked: Collection[str]) -> tuple[Together, ...]:
    """The runs in their order; the first of them there always is.

    Args:
        suite: declares the capabilities.
        subject: claims some of them.
        asked: names that code of the suite asks for: what such code does besides depends on them, so
            each that is not claimed is tried in a run of its own.
    """
    hopeless = untriable(suite, subject)
    triable = [each for each in suite.capabilities if each.name not in hopeless]
    alone = [
        each for each in triable if each.name in asked and each.name not in subject.capabilities
    ]
    first = tuple(each for each in triable if each not in alone)
    pretended = tuple(each.name for each in first if each.name not in subject.capabilities)
    return (
        Together(capabilities=first, pretended=pretended),
        *(Together(capabilities=(each,), pretended=(each.name,)) for each in alone),
    )
