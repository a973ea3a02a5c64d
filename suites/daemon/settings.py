"""What a test asks for beyond a daemon as it comes, and how the subject file says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.subject import Subject
from suites.daemon.confinement import Confinement

__all__ = ["Provider", "Settings", "fill", "knob_of", "turned"]

_FIELD: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A language model that the daemon may ask.

    Attributes:
        name: what the daemon calls it; a word of letters.
        shape: ``anthropic`` or ``openai``.
        url: its base URL.
        timeout_s: after which the daemon gives it up.
    """

    name: str
    shape: str
    url: str
    key: str
    model: str = "claude-haiku-4-5-20251001"
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a test asks for beyond a daemon as it comes.

    Attributes:
        knobs: knob of the subject file → value.
        providers: language models, in the order they are to be asked.
        skills: add the skills of the subject file before the start.
        confinement: what the daemon is started in.
        set_up: run the setup of the subject file in the new home.
        same_port: the port is its own through restarts, for clients that come back.
        default_root: it is not told of a working root, and takes the one of ``[defaults]``.
        variables: set as they are, over those of the subject file.
    """

    knobs: Mapping[str, object] = field(default_factory=dict)
    providers: Sequence[Provider] = ()
    skills: bool = False
    confinement: Confinement | None = None
    set_up: bool = True
    same_port: bool = False
    default_root: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def turned(subject: Subject, wanted: Mapping[str, object]) -> dict[str, object]:
    """Of knobs that are to be turned, those that there are: a fixture does not know its tests' marks."""
    return {name: value for name, value in wanted.items() if name in subject.table("knobs")}


def knob_of(subject: Subject, knob: str) -> Mapping[str, str]:
    """The variables that turn a knob.

    Raises:
        BadInput: the subject file has no such knob.
    """
    knobs = subject.table("knobs")
    if knob not in knobs:
        raise BadInput(subject.path, key="knobs", found=knob, expected="a table of that name")
    found: Mapping[str, str] = knobs[knob]
    return found


def fill(text: str, fields: Mapping[str, object], *, where: str) -> str:
    """``{fields}`` of a text filled in; what is no field, as in a shell command, stays."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in fields:
            raise BadInput(
                where,
                found=match[0],
                expected="one of " + ", ".join("{" + name + "}" for name in sorted(fields)),
            )
        return str(fields[match[1]])

    return _FIELD.sub(replace, text)
