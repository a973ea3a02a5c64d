"""Which of a product's faults one run plants: by id, by file, a sample that a seed decides, a shard."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness_core.assurance.planted._plan import Fault
from harness_core.assurance.planted._product import Product
from harness_core.assurance.shards import Shard, names_of
from harness_core.base.errors import BadInput, Unavailable

#: How many different hashes there are: eight bytes.
_HASHES: Final = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to plant of a product's faults; by default all of them.

    Attributes:
        subject: the subject file of the product; the reference system when ``None``.
        only: ids of the faults.
        files: names of their files, without ``.toml``.
        sample: how many of those, chosen by the seed; all when ``None``.
        seed: a word, e.g. a commit's hash; the same word chooses the same faults.
        shard: which part of those; all when ``None``.
        seconds: how long each took by ``SUITE/ID``, for shards that take equally long.
    """

    subject: Path | None = None
    only: Sequence[str] = ()
    files: Sequence[str] = ()
    sample: int | None = None
    seed: str = ""
    shard: Shard | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def chosen_by(self) -> str:
        """What decided which faults, in words."""
        seed = f"chosen by the seed {self.seed}" if self.sample is not None else ""
        shard = f"of shard {self.shard}" if self.shard is not None else ""
        return " ".join(word for word in (shard, seed) if word)

    def rerun(self, suite: str) -> str:
        """The command that plants the same faults again."""
        words = ["nox", "-s", "faults", "--", suite, *self.only]
        if self.subject is not None:
            words += ["--subject", str(self.subject)]
        for name in self.files:
            words += ["--file", name]
        if self.sample is not None:
            words += ["--sample", str(self.sample), "--seed", self.seed]
        return shlex.join(words)


def choose_faults(product: Product, choice: Choice) -> tuple[Fault, ...]:
    """The chosen faults, in the order of their files.

    Raises:
        BadInput: an id or a file is unknown, or there are more shards than faults.
    """
    faults = product.faults
    known = {fault.id for fault in faults}
    for name in choice.only:
        if name not in known:
            raise BadInput(
                product.file,
                key="fault.id",
                found=name,
                expected=f"one of {', '.join(sorted(known))}",
            )
    there = {fault.file for fault in faults}
    for name in choice.files:
        if name not in there:
            raise BadInput(
                product.file, found=f"no {name}.toml", expected=f"one of {', '.join(sorted(there))}"
            )
    named = tuple(
        fault
        for fault in faults
        if (not choice.only or fault.id in choice.only)
        and (not choice.files or fault.file in choice.files)
    )
    if choice.sample is not None:
        named = sample_faults(named, size=choice.sample, seed=choice.seed)
    return named if choice.shard is None else _of_shard(product.name, named, choice, choice.shard)


def _of_shard(
    suite: str, faults: Sequence[Fault], choice: Choice, shard: Shard
) -> tuple[Fault, ...]:
    """The faults of one shard."""
    names = {f"{suite}/{fault.id}": fault for fault in faults}
    if shard.count > len(names):
        raise BadInput(
            suite,
            key="--shard",
            found=str(shard),
            expected=f"no more shards than faults, which are {len(names)}",
        )
    mine = names_of(shard, names, seconds=choice.seconds)
    return tuple(fault for name, fault in names.items() if name in mine)


def sample_faults(faults: Sequence[Fault], *, size: int, seed: str) -> tuple[Fault, ...]:
    """A systematic sample: every n-th fault, with start and order within a file set by the seed.

    Each fault is as likely as any other, whatever its file, and each file gives its share (to the
    next whole number), so that over many seeds all of them come up.
    """
    if size >= len(faults):
        return tuple(faults)
    files = list(dict.fromkeys(fault.file for fault in faults))
    ordered = sorted(
        faults, key=lambda fault: (files.index(fault.file), _hash(seed, "fault", fault.id))
    )
    # In whole numbers: a step is len / size of a fault, the start lies within the first one.
    start = _hash(seed, "start")
    places = [
        (number * _HASHES + start) * len(faults) // (size * _HASHES) for number in range(size)
    ]
    chosen = {ordered[place].id for place in places}
    return tuple(fault for fault in faults if fault.id in chosen)


def commit_of(root: Path) -> str:
    """The hash of the commit that is checked out.

    Raises:
        Unavailable: there is no git, or no commit.
    """
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            check=False,
        )
        observed = asked.stderr.strip() or f"git ended with {asked.returncode}"
        commit = asked.stdout.strip() if asked.returncode == 0 else ""
    except OSError as error:
        observed, commit = str(error), ""
    if not commit:
        raise Unavailable(
            "choose a sample by the commit", observed=observed, next_step="Pass --seed WORD"
        )
    return commit


def _hash(*words: str) -> int:
    """A number below ``_HASHES`` that is the same on every machine and Python."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8])
