"""A daemon's process as the kernel shows it: is it the same one, what does it hold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness_core.base.errors import NotReady
from harness_core.base.wait import deadline, until
from harness_core.ports import listeners
from harness_core.process import command_line, parent, start_time

__all__ = ["Vitals", "below", "listening", "read_vitals", "running", "settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """A process at one moment.

    Attributes:
        pid: its number.
        started: its start time in clock ticks; with the pid it names one process for good.
        descriptors: open files, sockets among them.
        threads: its own.
        memory_kib: resident memory.
        most_memory_kib: the most of it that there ever was.
        children: processes it has started that still run.
    """

    pid: int
    started: int
    descriptors: int
    threads: int
    memory_kib: int
    most_memory_kib: int
    children: tuple[int, ...]

    @property
    def identity(self) -> tuple[int, int]:
        """What stays the same for as long as it is the same process."""
        return self.pid, self.started


def read_vitals(pid: int) -> Vitals:
    """Read a process's vitals once.

    Raises:
        AssertionError: there is none of that number: the daemon died.
    """
    started = start_time(pid)

    assert started is not None, f"the daemon (pid {pid}) is gone"
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        lines = [line.split() for line in status.splitlines()]
        memory = {line[0]: int(line[1]) for line in lines if line[0] in {"VmRSS:", "VmHWM:"}}

        assert memory, f"the daemon (pid {pid}) has ended and was not reaped"
        descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        threads = sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, PermissionError, ProcessLookupError) as error:
        # The files of a process that has ended are for root alone to see.
        raise AssertionError(f"the daemon (pid {pid}) has ended while it was read") from error
    return Vitals(
        pid=pid,
        started=started,
        descriptors=descriptors,
        threads=threads,
        memory_kib=memory["VmRSS:"],
        most_memory_kib=memory["VmHWM:"],
        children=below(pid),
    )


def listening(port: int) -> int:
    """The process that listens on a port; of a family the one that has the others below it.

    A child that is being started has the sockets of its parent until it is another program.

    Raises:
        AssertionError: none listens, or several that are no family.
    """
    pids = {row.pid: parent(row.pid) for row in listeners(port=port) if row.pid}
    first = [pid for pid, above in pids.items() if above is not None and above not in pids]

    assert len(first) == 1, (
        f"expected one process to listen on port {port}, found {pids or 'none'} (process: its parent)"
    )
    return first[0]


def below(pid: int) -> tuple[int, ...]:
    """The processes that a process has started and that still run, and theirs.

    Any of them may end while they are read, the one that was asked for too: it has none then.
    """
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                children = (task / "children").read_text(encoding="ascii")
                found += [int(child) for child in children.split()]
    return tuple(found + [deeper for child in found for deeper in below(child)])


def running(word: str) -> list[str]:
    """Processes with a word in their command line, whoever their parent, group and session are."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        line = " ".join(command_line(int(entry.name)))
        if word in line:
            found.append(f"pid {entry.name}: {line}")
    return found


async def settled(
    pid: int, *, descriptors: int, threads: int | None = None, seconds: float
) -> Vitals:
    """Wait until a process holds no more descriptors and threads than it did; its vitals then.

    Args:
        pid: the process.
        descriptors: at most so many.
        threads: at most so many; ``None`` for any number.
        seconds: how long that may take on a machine with nothing else to do.

    Raises:
        AssertionError: it still holds more after ``seconds``, or died.
    """
    seen = read_vitals(pid)

    async def back() -> bool:
        nonlocal seen
        seen = read_vitals(pid)
        few = threads is None or seen.threads <= threads
        return few and seen.descriptors <= descriptors

    try:
        with deadline("see descriptors closed", seconds=seconds):
            await until(back)
    except NotReady as error:
        if seen.descriptors > descriptors:
            raise AssertionError(
                f"open files grew from {descriptors} to {seen.descriptors} and stayed so for "
                f"{seconds:g} s: {_open_files(pid)}"
            ) from error
        raise AssertionError(
            f"threads grew from {threads} to {seen.threads} and stayed so for {seconds:g} s"
        ) from error
    return seen


def _open_files(pid: int) -> str:
    found = []
    for entry in sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda path: int(path.name)):
        try:
            found.append(f"{entry.name} → {entry.readlink()}")
        except FileNotFoundError:
            continue
    return ", ".join(found)
