"""What a subject file claims for its product, held to what its suite declares."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import did_you_mean
from harness_core.system.subject import Subject

if TYPE_CHECKING:
    from harness_core.system.suites import Capability, Suite

__all__ = ["check_claims", "missing_keys", "pretending"]


def check_claims(subject: Subject, suite: Suite) -> None:
    """Check that the suite knows what is claimed, and that the file says what tests of it read.

    Args:
        subject: a product for the suite.
        suite: declares what may be claimed.

    Raises:
        BadInput: the first claim that is unknown, or whose keys are not there.
    """
    declared = {capability.name: capability for capability in suite.capabilities}
    known = ", ".join(sorted(declared)) or "none"
    for name in sorted(subject.capabilities - set(declared)):
        raise BadInput(
            subject.path,
            key="subject.capabilities",
            found=name,
            expected=f"a [[capability]] of suites/{suite.name}/suite.toml: {known}",
            next_step=did_you_mean(name, declared),
        )
    for name in sorted(subject.capabilities):
        for key in missing_keys(subject, declared[name]):
            expected = f"it there, since the capability {name!r} is claimed"
            raise BadInput(subject.path, key=key, found=None, expected=expected)


def pretending(subject: Subject, suite: Suite, names: Collection[str]) -> Subject:
    """The subject as if its file claimed these capabilities too.

    Raises:
        BadInput: the suite does not declare one of them.
    """
    declared = sorted(capability.name for capability in suite.capabilities)
    for name in names:
        if name not in declared:
            raise BadInput(
                "pytest",
                key="--try-capability",
                found=name,
                expected=f"one of {', '.join(declared) or 'none'}",
                next_step=did_you_mean(name, declared),
            )
    return structs.replace(subject, capabilities=subject.capabilities | set(names))


def missing_keys(subject: Subject, capability: Capability) -> list[str]:
    """The keys that a capability needs and the subject file does not have."""
    return [key for key in capability.needs if not _has(subject, key)]


def _has(subject: Subject, key: str) -> bool:
    value: object = subject.tables
    for step in key.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True
