"""How an ecosystem grows: boot, one message and memory with 4, 16 and 48 butlers, in one run.

Each size is a roster made for it: the subject's own switchboard and butlers that know one invented
word each, so that every message has one right target and its classification reads the whole
registry. What is printed beside the totals is what each *added* butler costs: if that grows with
the size, something is worse than linear. Numbers of different runs are not compared.

    nox -s bench -- scale          or: python -m suites.e2e.bench.scale [SIZE …]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.doubles.turns import route, say
from harness_core.process import open_run
from harness_core.system.subject import load_subject
from suites.e2e.ecosystem.boot import open_ecosystem, roster_directory
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import follow

FOLDER: Final = Path(__file__).parents[1]

SIZES: Final = (4, 16, 48)

#: Messages at each size: the first of them finds everything cold.
MESSAGES: Final = 3

#: Marginal cost of the last step to the first above which growth is called worse than linear; the
#: spread of repeated runs on two busy cores is about a third.
LINEAR: Final = 1.5

#: What all butlers of an ecosystem together may add to a column without being told from chance.
NOISE: Final = 0.1

BUTLER: Final = """
[butler]
name = "{name}"
port = {port}
description = "Keeps the records of {word}: every note about {word} belongs here."
capabilities = ["{word}"]
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One size.

    Attributes:
        boot_s: from nothing to the last registration.
        message_s: median from a message's sending to its final state.
        cpu_s: processor time that the butlers' processes had used when all were registered, together;
            unlike ``boot_s`` it does not depend on who else is at work on the machine.
        own_mib: memory that the butlers' processes do not share, together (PSS).
    """

    butlers: int
    boot_s: float
    cpu_s: float
    message_s: float
    own_mib: float


def main() -> int:
    """Measure and print; the exit status is 1 when a size could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="SIZE")
    sizes = sorted(set(parser.parse_args().sizes))
    if len(sizes) < 2 or sizes[0] < 2:
        parser.error(f"sizes {sizes}: expected two or more different ones, each 2 or above")
    try:
        samples = [trio.run(measure, size) for size in sizes]
    except (HarnessError, AssertionError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(table(samples) + "\n")
    return 0


async def measure(size: int) -> Sample:
    """Boot one size from nothing, send its messages, measure its memory."""
    subject = load_subject(FOLDER / "reference-system" / "subject.toml")
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        Path(scratch).chmod(0o711)
        roster = make_roster(Path(scratch) / "roster", roster_directory(subject), size)
        evidence = open_evidence(Path(scratch) / "evidence")
        async with (
            open_run(evidence=evidence) as run,
            open_ecosystem(
                run, subject, evidence=evidence, roster=roster, say=progress
            ) as ecosystem,
        ):
            cpu = sum(cpu_s(butler.pid) for butler in ecosystem.butlers.values())
            taken = [await one_message(ecosystem, number, size) for number in range(MESSAGES)]
            own = sum(memory_mib(butler.pid) for butler in ecosystem.butlers.values())
            return Sample(
                butlers=size,
                boot_s=ecosystem.boot_s,
                cpu_s=cpu,
                message_s=statistics.median(taken),
                own_mib=own,
            )


def make_roster(folder: Path, original: Path, size: int) -> Path:
    """A roster of ``size`` butlers: the real switchboard, and others that know one word each."""
    shutil.copytree(original / "switchboard", folder / "switchboard")
    for number in range(1, size):
        directory = folder / name_of(number)
        directory.mkdir()
        text = BUTLER.format(name=name_of(number), port=8200 + number, word=word_of(number))
        (directory / "butler.toml").write_text(text, encoding="utf-8")
    return folder


def name_of(number: int) -> str:
    """The name of a generated butler."""
    return f"keeper{number:02}"


def word_of(number: int) -> str:
    """A word that no other butler knows, and no two of which begin alike."""
    syllables = ("bra", "cli", "dro", "fle", "gru", "kni", "plo", "ske", "tru", "vli")
    return f"{syllables[number % 10]}{syllables[number // 10]}moth"


async def one_message(ecosystem: Ecosystem, number: int, size: int) -> float:
    """Seconds from the sending of one message to its final state at its one right target."""
    target = 1 + (number * 7) % (size - 1)
    began = time.perf_counter()
    sent = await ecosystem.send(
        f"Please note about the {word_of(target)}: number {number} is new",
        model=[route(name_of(target)), say("Noted.")],
    )
    journey = await follow(ecosystem, sent)
    taken_s = time.perf_counter() - began

    assert journey.targets() == (name_of(target),), journey.text()
    assert not journey.unfinished, journey.text()
    return taken_s


def cpu_s(pid: int) -> float:
    """Processor time of a process and its ended children so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Proportional memory of a process in MiB: shared pages counted once over all who share them."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise HarnessError(f"read the memory of process {pid}", observed="smaps_rollup has no Pss")


#: Title of a column, how a sample is read, and how much of it a unit of "per added" is.
COLUMNS: Final = (
    ("boot s", "boot_s", 1000, "ms"),
    ("cpu s", "cpu_s", 1000, "ms"),
    ("message s", "message_s", 1000, "ms"),
    ("PSS MiB", "own_mib", 1, "MiB"),
)


def table(samples: Sequence[Sample]) -> str:
    """Totals, what each added butler cost since the size before, and whether that grows."""
    heads = "".join(f"{title:>11}{'per added':>13}" for title, *_ in COLUMNS)
    lines = [
        f"an ecosystem of N butlers on {os.cpu_count()} cores, one process each",
        f"  {'N':>4}{heads}",
    ]
    for before, sample in zip([None, *samples], samples, strict=False):
        cells = [f"  {sample.butlers:>4}"]
        for _, field, scale, unit in COLUMNS:
            added = f"{marginal(before, sample, field) * scale:.1f} {unit}" if before else ""
            cells.append(f"{getattr(sample, field):>11.2f}{added:>13}")
        lines.append("".join(cells))
    if len(samples) > 2:
        for title, field, *_ in COLUMNS:
            first = marginal(samples[0], samples[1], field)
            last = marginal(samples[-2], samples[-1], field)
            lines.append(
                f"  {title} per added butler {growth(first, last, whole=samples[-1], field=field)}"
            )
    return "\n".join(lines)


def growth(first: float, last: float, *, whole: Sample, field: str) -> str:
    """Whether a butler of the last step cost more than one of the first.

    Args:
        first: what each butler of the first step added.
        last: what each of the last added.
        whole: the largest ecosystem.
        field: the column.
    """
    share = last * whole.butlers / getattr(whole, field)
    if share < NOISE:
        return f"does not grow: as in the last step, all would make up {max(share, 0.0):.0%}"
    grown = last / first if first > 0 else float("inf")
    verdict = "does not grow" if grown <= LINEAR else "GROWS"
    return f"{verdict}: last step {grown:.2f} x the first"


def marginal(before: Sample, after: Sample, field: str) -> float:
    """What each butler between two sizes added to a column."""
    apart = getattr(after, field) - getattr(before, field)
    return float(apart) / (after.butlers - before.butlers)


def progress(text: str) -> None:
    """How a boot goes, but for the many lines of single butlers."""
    if " ready at " not in text:
        sys.stderr.write(f"  {text}\n")


if __name__ == "__main__":
    sys.exit(main())
