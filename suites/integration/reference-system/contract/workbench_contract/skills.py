"""Skills: what agents are taught, from a git repository, one commit for each run.

A skill is a folder at the top of the repository with a ``SKILL.md``, whose front matter has its ``name`` (the
folder's) and a ``description``. A session has them below ``skills/``, read-only.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from workbench_contract.base import Model

#: As many versions are listed.
MOST_VERSIONS = 100


class Skill(Model):
    """One skill.

    Attributes:
        description: when it is of use, in the words of its ``SKILL.md``.
    """

    name: str
    description: str


class SkillsGiven(Model):
    """The skills of a run: all of a commit, or none.

    Attributes:
        commit: of the repository, hexadecimal; none where there are none.
        skills: by their names.
        problem: why there are none; empty where there is a commit.
    """

    commit: str | None
    skills: list[Skill]
    problem: str


class SkillVersion(Model):
    """A version that runs have had.

    Attributes:
        runs: how many, whatever has become of them.
        first_at, last_at: when the first and the last of them were submitted.
    """

    commit: str
    runs: int
    first_at: datetime
    last_at: datetime


class SkillsKnown(SkillsGiven):
    """The skills that a run is given which begins now, and what runs were given before.

    Attributes:
        versions: the latest ``MOST_VERSIONS`` by their last run.
    """

    versions: list[SkillVersion]


class ReadVia(StrEnum):
    """Who read: the worker for whoever called its API, or a process behind the session's walls."""

    FILE_API = "file_api"
    CODE = "code"


class Observed(StrEnum):
    """What was seen of a read.

    Attributes:
        OPENED: opened for reading, and then mapped into memory, or left alone: that looks alike.
    """

    READ = "read"
    OPENED = "opened"


class SkillRead(Model):
    """Payload of an event ``skill_read``: what was seen, never what an agent says.

    Attributes:
        path: in the session, below ``skills/``.
        commit: of the version that was read.
        job_id: of the process that read; each of its files is told once. None where the worker read.
    """

    skill: str
    path: str
    commit: str
    via: ReadVia
    observed: Observed
    job_id: str | None
