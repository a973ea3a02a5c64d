"""From the sessions that nox lists to the jobs of a workflow: how many shards, how long at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.errors import BadInput
from harness_core.shards import Durations, Shard, read_durations

__all__ = ["Job", "plan_jobs"]

#: What a job is meant to take, without its environment: a person waits for the longest of them.
TARGET_S: Final = 600.0

#: Checkout, Python, system packages and the environments of nox, with nothing in a cache.
SETUP_MINUTES: Final = 8

#: A limit is this many times what was measured: runners differ, and a limit ends only what hangs.
MARGIN: Final = 2.5

#: The limit of a session that was never measured.
UNMEASURED_MINUTES: Final = 60

#: The limit of one that runs no tests (lint, types): seconds, and its environment.
STATIC_MINUTES: Final = 15

#: A planted fault that was never measured. Mean of the 117 of e2e on 2 cores: see docs/ci.md.
FAULT_S: Final = 20.0

#: Faults planted at once in a job.
FAULT_JOBS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a workflow's matrix.

    Attributes:
        name: what people see.
        slug: the same for names of files and artifacts.
        session: the nox session.
        arguments: what follows ``--``, one word each.
        minutes: its time limit.
        tools: whether its tests drive tools of the system (tmux, Emacs, bubblewrap).
    """

    name: str
    slug: str
    session: str
    arguments: tuple[str, ...]
    minutes: int
    tools: bool


def plan_jobs(
    rows: Sequence[Mapping[str, object]],
    *,
    durations: Path,
    faults: Mapping[str, int],
    arguments: Sequence[str] = (),
) -> tuple[Job, ...]:
    """One job for each session, or for each shard of a session that takes longer than a job should.

    Args:
        rows: what ``nox -l --json`` printed.
        durations: the folder with a ``SESSION.json`` for each that was measured.
        faults: for each session that plants faults, how many.
        arguments: more words for every session.

    Raises:
        BadInput: a row is no session, or a file of durations is malformed.
    """
    jobs: list[Job] = []
    for row in rows:
        session, tags = row.get("session"), row.get("tags")
        if not isinstance(session, str) or not isinstance(tags, list):
            raise BadInput("nox -l --json", found=row, expected="a session with tags")
        path = durations / f"{session}.json"
        count, minutes = _shards_and_minutes(session, tags, read_durations(path), faults=faults)
        shards = [Shard(number, count) for number in range(1, count + 1)] if count > 1 else [None]
        for shard in shards:
            of_shard = ["--shard", str(shard)] if shard else []
            words = [*of_shard, *_words_of(session, tags, path, faults=faults), *arguments]
            jobs.append(
                Job(
                    name=f"{session} {shard}" if shard else session,
                    slug=f"{session}-{shard.number}-of-{shard.count}" if shard else session,
                    session=session,
                    arguments=tuple(words),
                    minutes=minutes,
                    tools="static" not in tags,
                )
            )
    return tuple(jobs)


def _words_of(
    session: str, tags: Sequence[str], path: Path, *, faults: Mapping[str, int]
) -> list[str]:
    """What a session is given in any case: where its durations are, how much to do at once."""
    if session in faults:
        return [f"--durations-file={path}", "--jobs", str(FAULT_JOBS)]
    return [f"--durations-file={path}"] if "tests" in tags else []


def _shards_and_minutes(
    session: str, tags: Sequence[str], known: Durations, *, faults: Mapping[str, int]
) -> tuple[int, int]:
    """How many shards, and the limit of each."""
    if "static" in tags:
        return 1, STATIC_MINUTES
    if not known.measured and session in faults:
        # Guessed, and the limit is not held to the guess.
        guessed_s = faults[session] * FAULT_S / FAULT_JOBS
        return max(1, min(math.ceil(guessed_s / TARGET_S), faults[session])), UNMEASURED_MINUTES
    if not known.measured:
        return 1, UNMEASURED_MINUTES
    wanted = math.ceil(known.total_s / TARGET_S)
    count = max(1, min(wanted, len(known.measured) // known.workers))
    # No shard is shorter than the longest test.
    longest_s = max(known.total_s / count, *known.seconds.values())
    return count, SETUP_MINUTES + math.ceil(longest_s * MARGIN / 60)
