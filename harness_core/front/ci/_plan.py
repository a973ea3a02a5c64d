"""From the sessions that nox lists to the jobs of a workflow: how many shards, how long at most."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from harness_core.assurance.shards import Durations, Shard, part_of, read_durations
from harness_core.base.errors import BadInput

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

#: A planted fault that was never measured: a guess, which the first nightly run replaces.
FAULT_S: Final = 20.0

#: A sample of a product's mutants is divided so: each part measures first what tests execute, which
#: takes twice what the tests take.
MUTANT_SHARDS: Final = 3
MUTANT_MINUTES: Final = 90

#: Faults planted at once in a job.
FAULT_JOBS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a workflow's matrix.

    Attributes:
        name: what people see.
        slug: the same for names of files and artifacts.
        session: the nox session.
        arguments: what follows ``--``; words without blanks or quotes, so that a shell splits them.
        minutes: its time limit.
        tools: whether its tests drive tools of the system (tmux, Emacs, bubblewrap).
        require: the gates that it is for, as HARNESS_REQUIRE names them.
        measures: the file of durations that it writes; empty when it writes none.
        results: the file of verdicts on mutants that it writes; empty when it writes none.
    """

    name: str
    slug: str
    session: str
    arguments: str
    minutes: int
    tools: bool
    require: str
    measures: str
    results: str


class Session(Struct, frozen=True):
    """A session as ``nox -l --json`` lists it, as far as it is read here."""

    session: str
    tags: tuple[str, ...]


def read_sessions(text: str) -> tuple[Session, ...]:
    """Read one or more lists that ``nox -l --json`` printed, one a line.

    Raises:
        BadInput: it is no such list, or there is no session.
    """
    rows: dict[str, Session] = {}
    for line in filter(None, text.splitlines()):
        try:
            rows |= {row.session: row for row in msgspec.json.decode(line, type=list[Session])}
        except msgspec.DecodeError as error:
            expected = f"what nox -l --json prints ({error})"
            raise BadInput("stdin", found=line[:80], expected=expected) from error
    if not rows:
        raise BadInput("stdin", found="no session", expected="at least one")
    return tuple(rows.values())


def plan_jobs(
    sessions: Sequence[Session],
    *,
    durations: Path,
    faults: Mapping[str, int],
    arguments: Sequence[str] = (),
) -> tuple[Job, ...]:
    """One job for each session, or for each shard of a session that takes longer than a job should.

    Args:
        sessions: what ``nox -l --json`` printed.
        durations: the folder with a ``SESSION.json`` for each that was measured.
        faults: for each session that plants faults, how many.
        arguments: more words for every session.

    Raises:
        BadInput: a file of durations is malformed, or a word is not plain.
    """
    jobs: list[Job] = []
    for row in sessions:
        session, tags = row.session, row.tags
        path = durations / f"{session}.json"
        measured = "tests" in tags or session in faults
        count, minutes = _shards_and_minutes(session, tags, read_durations(path), faults=faults)
        for number in range(1, count + 1):
            shard = Shard(number, count) if count > 1 else None
            words = ["--shard", str(shard)] if shard else []
            words += [f"--durations-file={path}"] if measured else []
            words += ["--jobs", str(FAULT_JOBS)] if session in faults else []
            jobs.append(
                Job(
                    name=f"{session} {shard}" if shard else session,
                    slug=f"{session}-{number}-of-{count}" if shard else session,
                    session=session,
                    arguments=_joined([*words, *arguments]),
                    minutes=minutes,
                    tools="static" not in tags,
                    require="docker" if "docker" in tags else "",
                    measures=str(part_of(path, shard)) if measured else "",
                    results=_results(session, shard) if "mutants" in tags else "",
                )
            )
    return tuple(jobs)


def _results(session: str, shard: Shard | None) -> str:
    """Where ``harness mutate`` keeps the verdicts of a shard."""
    suite = session.removeprefix("mutate-")
    name = f"results.{shard.number}-of-{shard.count}" if shard else "results"
    return f".evidence/mutation/{suite}/{name}.sqlite"


def _joined(words: Sequence[str]) -> str:
    """One string that ``read -ra`` of a shell takes apart again."""
    for word in words:
        if shlex.quote(word) != word:
            raise BadInput("harness ci plan", key="--arguments", found=word, expected="plain words")
    return " ".join(words)


def _shards_and_minutes(
    session: str, tags: Sequence[str], known: Durations, *, faults: Mapping[str, int]
) -> tuple[int, int]:
    """How many shards, and the limit of each."""
    if "static" in tags:
        return 1, STATIC_MINUTES
    if "mutants" in tags:
        return MUTANT_SHARDS, MUTANT_MINUTES
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
