"""What a role hands over, and what the next one starts from.

A hand-over is the bytes that a gate has accepted; the controller keeps them, and a session that starts
from them has those, whatever has become of the files since.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from workbench_contract.artifact import Sha256
from workbench_contract.base import Model, Text
from workbench_contract.episodes import AgentRole, Purpose
from workbench_contract.files import PATH_CHARS
from workbench_contract.findings import Finding, Stage
from workbench_contract.problem import Problem
from workbench_contract.skills import SkillsGiven
from workbench_contract.todo import IssuedEntry

#: More files than this, or more bytes in all of them, are not handed over.
MOST_FILES = 500
MOST_BYTES = 16 << 20

#: Where the geometry of a benchmark's environment lies in a session: its script, and whatever else is there.
ENVIRONMENT = "environment"
GEOMETRY = f"{ENVIRONMENT}/geometry.py"
#: Where it is said in a session why its role is asked once more.
CONTEXT = "context"


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("bytes in base64") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


#: Bytes; base64 on the wire.
Content = Annotated[
    bytes,
    BeforeValidator(_bytes, json_schema_input_type=str),
    PlainSerializer(_base64, return_type=str, when_used="json"),
]

_PATH = Field(min_length=1, max_length=PATH_CHARS)
_JOB = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")


class HandedFile(Model):
    """A file of a hand-over."""

    path: str = _PATH
    sha256: Sha256
    size_bytes: int


class FileBytes(Model):
    """A file with its bytes."""

    path: Text = _PATH
    content: Content


class EnvironmentSolid(Model):
    """A solid of a benchmark's environment, as it was measured when it was handed over.

    Attributes:
        min_mm, max_mm: corners of the smallest box around it.
    """

    name: str
    volume_mm3: float
    min_mm: list[float]
    max_mm: list[float]


class Given(Model):
    """The hand-over that a session starts from.

    Attributes:
        refuses_plan: it is a coder's refusal of the plan, and no design.
    """

    handover_id: str
    role: AgentRole
    refuses_plan: bool
    files: list[HandedFile]


class OpenRequest(Model):
    """What a session is for; said once, before its agent begins.

    Attributes:
        issued: mandatory entries of its ``todo.md``, in order.
        files: what stands in it when its agent begins.
        resumed: what its role left in an earlier round, above those.
        context: why it is asked once more; a coder hands that on as it is.
    """

    role: AgentRole
    purpose: Purpose = Purpose.ENGINEERING
    issued: list[IssuedEntry] = Field(default_factory=list, max_length=200)
    files: list[FileBytes] = Field(default_factory=list, max_length=MOST_FILES + 10)
    given: Given | None = None
    resumed: list[FileBytes] = Field(default_factory=list, max_length=MOST_FILES)
    context: list[FileBytes] = Field(default_factory=list, max_length=10)


class Opened(Model):
    """A session is open.

    Attributes:
        files: what it began with.
        skills: what it has below ``skills/``.
    """

    session_id: str
    role: AgentRole
    files: list[HandedFile]
    skills: SkillsGiven


class SubmitRequest(Model):
    """Hand over what the role of the session has to leave.

    Attributes:
        job_id: of the call, in every attempt: one that is asked again is answered as before.
    """

    job_id: str | None = _JOB


class Submitted(Model):
    """A hand-over that was accepted.

    Attributes:
        warnings: what is allowed and probably not meant.
    """

    handover_id: str
    role: AgentRole
    refuses_plan: bool
    files: list[HandedFile]
    warnings: list[Finding]


class SubmissionRefused(Problem):
    """A hand-over that was not accepted; nothing has changed.

    Attributes:
        stage: the first that found something.
        findings: all of that stage.
    """

    role: AgentRole
    stage: Stage
    findings: list[Finding]


class HandedOver(Model):
    """The bytes of an accepted hand-over, as the worker keeps them."""

    handover_id: str
    files: list[FileBytes]


class Handover(Model):
    """An accepted hand-over, as the controller keeps it.

    Attributes:
        event_seq: of the worker's event that says so.
        accepted_at: the time of that event.
        geometry: the solids of a benchmark's environment.
    """

    handover_id: str
    episode_id: str
    session_id: str
    role: AgentRole
    purpose: Purpose
    refuses_plan: bool
    geometry: list[EnvironmentSolid]
    event_seq: int
    accepted_at: datetime
    files: list[HandedFile]
