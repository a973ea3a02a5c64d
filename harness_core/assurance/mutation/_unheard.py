"""Which Python processes of the product ran without the agent: nothing is known of what they executed.

The agent cannot say so itself. So the processes below this one are looked at from outside while the
tests run: those that the product's Python runs, and those that run its code with another. Of each
that the agent reached, a hub has written down that it was heard of.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from harness_core.assurance.agent import VARIABLE
from harness_core.assurance.mutation._product import Product
from harness_core.base.groups import lone_error
from harness_core.base.wait import until
from harness_core.process import command_line

#: A look takes some milliseconds. A process that ends sooner may not be seen.
_LOOK_S: Final = 0.2

#: The agent has connected by then: it takes a twentieth of a second of a processor, and on a busy
#: machine longer than that. A process that ended before was not lost, it did not begin.
_CPU_S: Final = 0.1
_AGE_S: Final = 5.0

_TICKS: Final = os.sysconf("SC_CLK_TCK")

#: Of a command line that holds a whole program.
_ARGV_CHARS: Final = 200

#: What is shown to people; the JSON has all.
_SHOWN: Final = 10


class Unheard(NamedTuple):
    """Processes of one command line.

    Attributes:
        argv: the command line, as a line of words.
        processes: how many there were.
        why: what is known of the cause; empty for nothing.
    """

    argv: str
    processes: int
    why: str


def words_about(unheard: Sequence[Unheard]) -> list[str]:
    """Lines for people; none when the agent was in every process."""
    if not unheard:
        return []
    count = sum(each.processes for each in unheard)
    processes = "1 process" if count == 1 else f"{count} processes"
    consequence = "what only they execute is reported as not covered (docs/how-to/mutation.md)"
    lines = [f"{processes} of the product ran without the agent; {consequence}"]
    for each in unheard[:_SHOWN]:
        why = f" ({each.why})" if each.why else ""
        argv = each.argv if len(each.argv) <= _ARGV_CHARS else f"{each.argv[:_ARGV_CHARS]}…"
        lines.append(f"  {each.processes} x {argv}{why}")
    if len(unheard) > _SHOWN:
        lines.append(f"  and {len(unheard) - _SHOWN} other command lines")
    return lines


@asynccontextmanager
async def watch(product: Product) -> AsyncIterator[Watch]:
    """Look at the processes below this one until the block ends."""
    found = Watch(product)

    async def look() -> None:
        found.look()

    async with lone_error(), trio.open_nursery() as nursery:
        if product.environment is not None:
            nursery.start_soon(lambda: until(look, poll_s=_LOOK_S, slowest_s=_LOOK_S))
        yield found
        nursery.cancel_scope.cancel()


class _Key(NamedTuple):
    """A process for ever: its pid and its start, in clock ticks since boot."""

    pid: int
    start: int


@dataclass(slots=True)
class _Seen:
    """What was seen of a process, at the last look at which it ran."""

    parent: _Key | None
    program: str = ""
    argv: list[str] = field(default_factory=list)
    cpu_s: float = 0.0
    age_s: float = 0.0
    is_of_product: bool = False
    has_variable: bool = False


class Watch:
    """What ran below this process; :meth:`look` as often as wanted, then :meth:`unheard`."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._seen: dict[_Key, _Seen] = {}
        self._is_python: dict[str, bool] = {}

    def look(self) -> None:
        """Look at every process below this one."""
        table = _processes()
        with open("/proc/uptime", encoding="ascii") as file:  # noqa: PTH123 - several times a second
            now = float(file.read().split()[0])
        for key, (parent, ticks) in _below(os.getpid(), table).items():
            argv = command_line(key.pid)
            if not any(argv):
                continue  # it has ended since, or is being born
            above = table.get(parent)
            seen = self._seen.setdefault(
                key, _Seen(parent=_Key(parent, above.start) if above else None)
            )
            seen.cpu_s, seen.age_s = ticks / _TICKS, now - key.start / _TICKS
            program = _program(key.pid) or argv[0]
            # A child is its parent until it becomes another program.
            if (program, argv) != (seen.program, seen.argv):
                seen.is_of_product = self._runs_python(key.pid, program) and _is_of_product(
                    key.pid, argv, self._product
                )
                seen.has_variable = VARIABLE in _environment(key.pid)
            seen.program, seen.argv = program, argv

    def _runs_python(self, pid: int, program: str) -> bool:
        if program not in self._is_python:
            named = Path(program).name.startswith("python")
            self._is_python[program] = named or _maps(pid, "/libpython")
        return self._is_python[program]

    def unheard(self, messages: Iterable[Mapping[str, Any]]) -> list[Unheard]:
        """Those of the product that no message tells of: first what is called by its names."""
        heard: set[tuple[int, int | None]] = set()
        failed: dict[int, str] = {}
        for message in messages:
            if "heard" in message:
                pid, start = message["heard"]
                heard.add((pid, start))
            elif "failed" in message:
                failed[message["pid"]] = message["failed"]
        counts: Counter[tuple[str, str]] = Counter()
        for key, seen in self._seen.items():
            if not seen.is_of_product or (seen.cpu_s < _CPU_S and seen.age_s < _AGE_S):
                continue
            if key.pid in failed:
                why = f"the agent failed: {failed[key.pid]}"
            elif self._was_heard(key, heard):
                continue
            else:
                why = "" if seen.has_variable else f"{VARIABLE} is not in its environment"
            counts[" ".join(" ".join(seen.argv).split()), why] += 1
        found = [Unheard(argv, number, why) for (argv, why), number in counts.most_common()]
        names = _names(self._product)
        return sorted(found, key=lambda each: not any(name in each.argv for name in names))

    def _was_heard(self, key: _Key, heard: set[tuple[int, int | None]]) -> bool:
        """Itself, or the process that it is a fork of: that has the agent from there."""
        if (key.pid, key.start) in heard or (key.pid, None) in heard:
            return True
        seen = self._seen[key]
        above = self._seen.get(seen.parent) if seen.parent is not None else None
        is_fork = above is not None and above.argv == seen.argv
        return is_fork and seen.parent is not None and self._was_heard(seen.parent, heard)


class _Row(NamedTuple):
    start: int
    parent: int
    ticks: int


def _processes() -> dict[int, _Row]:
    """Every process of the machine that runs."""
    found = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] != b"Z":
            ticks = int(fields[11]) + int(fields[12])
            found[int(entry)] = _Row(start=int(fields[19]), parent=int(fields[1]), ticks=ticks)
    return found


def _below(root: int, table: Mapping[int, _Row]) -> dict[_Key, tuple[int, int]]:
    """Every process below one, with its parent and the clock ticks that it took."""
    children: dict[int, list[int]] = {}
    for pid, row in table.items():
        children.setdefault(row.parent, []).append(pid)
    found: dict[_Key, tuple[int, int]] = {}
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(
            (_Key(pid, table[pid].start), (table[pid].parent, table[pid].ticks)) for pid in below
        )
        queue += below
    return found


def _is_of_product(pid: int, argv: Sequence[str], product: Product) -> bool:
    """Whether it, a Python, is the product's, or another one that runs the product's code."""
    environment = product.environment
    assert environment is not None
    if environment.own and any("harness_core" in word for word in argv):
        return False  # the harness itself, which has no agent
    command = (
        argv[0] if "/" in argv[0] else shutil.which(argv[0], path=_environment(pid).get("PATH"))
    )
    bin_folder = os.path.realpath(environment.python.parent)
    if command is not None and os.path.realpath(Path(command).parent) == bin_folder:
        return True
    words = (Path(word) for word in argv[1:] if word.startswith("/"))
    if any(source in word.parents for word in words for source in product.sources):
        return True
    # One that has given itself another name: what does so is a library of the environment.
    return _maps(pid, str(environment.packages))


def _names(product: Product) -> set[str]:
    """What command lines call its code by: its packages, its modules of no package, its folders."""
    names = {str(source) for source in product.sources}
    for path in product.files.values():
        top = path.with_suffix("")
        while (top.parent / "__init__.py").exists():
            top = top.parent
        names.add(top.name)
    return names


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return ""


def _maps(pid: int, text: str) -> bool:
    try:
        return text in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _environment(pid: int) -> dict[str, str]:
    """What it was started with, as far as we may see it."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    rows = (entry.partition(b"=") for entry in content.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in rows}
