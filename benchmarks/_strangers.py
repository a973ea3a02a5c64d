"""A small suite of a stranger (twenty tests, PostgreSQL, a web process), by ours and by its peers.

``benchmarks/strangers/suite`` is what all share; the folder beside it is a peer's glue, as its
documentation has it. All do the same: a server and the web process for the run, a table that is
emptied before each test. Measured is ``python -m pytest``, from its start to its end. Images are
made and caches filled before: it is what a run costs that is not the first.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks._left import Left, Traces, adopt_orphans
from benchmarks._shop_images import ShopImages, open_images
from benchmarks._table import Table
from harness_core.base.errors import HarnessError
from harness_core.base.wait import until_blocking
from harness_core.infrastructure.engine import engine_reason
from harness_core.infrastructure.services import usable_binaries

__all__ = ["CONTENDERS", "Contender", "bench_strangers", "glue_lines"]

_PLACE: Final = Path(__file__).with_name("strangers")
_PASSED: Final = re.compile(r"^20 passed", re.MULTILINE)
_OURS: Final = "ours"

#: A run that takes longer hangs.
_RUN_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to have the fixtures of the suite.

    Attributes:
        folder: its glue, below ``benchmarks/strangers``.
        plugin: of pytest; no other is loaded.
        engine: it needs one.
        installed: it needs an installed PostgreSQL, and gets the one that ours has. As root it is run in a user namespace where it is another user, since PostgreSQL refuses root.
    """

    folder: str
    plugin: str = ""
    engine: bool = False
    installed: bool = False


CONTENDERS: Final[Mapping[str, Contender]] = {
    _OURS: Contender(folder="ours", plugin="harness_core.front.pytest_plugin"),
    "pytest-postgresql + glue": Contender(
        folder="pytest-postgresql", plugin="pytest_postgresql.plugin", installed=True
    ),
    "testcontainers": Contender(folder="testcontainers", engine=True),
    "pytest-docker": Contender(folder="pytest-docker", plugin="pytest_docker", engine=True),
}


class Strangers(Table):
    """Wall times, and what else is counted of each contender.

    Attributes:
        lines: of glue.
        left: after SIGKILL of the runner, and after the next run.
        remarks: what was otherwise than its author has it.
    """

    def __init__(self) -> None:
        super().__init__(
            "20 tests of a web process on PostgreSQL, from the start of pytest to its end",
            ours=_OURS,
            contenders=tuple(CONTENDERS),
        )
        self.lines: dict[str, int] = {name: glue_lines(each) for name, each in CONTENDERS.items()}
        self.left: dict[str, tuple[Left, Left]] = {}
        self.remarks: Mapping[str, str] = {}

    def text(self) -> str:
        """The table of times, and below it glue, leftovers, remarks."""
        width = max(map(len, CONTENDERS))
        rows = [f"  {'':{width}}  lines of glue  left after SIGKILL of pytest"]
        for name in CONTENDERS:
            killed, later = self.left.get(name, ("not run", ""))
            more = f"; after the next run {later}" if later and str(later) != str(killed) else ""
            remark = f" ({self.remarks[name]})" if name in self.remarks else ""
            rows.append(f"  {name:{width}}  {self.lines[name]:13}  {killed}{more}{remark}")
        return "\n".join([super().text(), "", *rows])


def bench_strangers(*, rounds: int) -> tuple[Table, ...]:
    """Run each contender once unmeasured, ``rounds`` times measured, and once until it is killed."""
    table = Strangers()
    adopt_orphans()
    # As Ctrl-C does: what runs is removed first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="strangers-")))
        scratch.chmod(0o711)  # a server's account has to pass through
        images, reason = None, engine_reason()
        if not reason:
            images = held.enter_context(open_images(scratch / "docker"))
            table.remarks = images.remarks
        runs: dict[str, _Runs] = {}
        for name, contender in CONTENDERS.items():
            if contender.engine and reason:
                table.leave_out(name, f"no engine: {reason.partition(';')[0]}")
            else:
                runs[name] = _Runs(name, contender, images, scratch)
        for number in range(rounds + 1):
            for name, each in runs.items():
                with _reported(table, name):
                    taken_s = each.measure()
                    _say(f"round {number} of {rounds}: {name}: {taken_s:.2f} s")
                    if number:
                        table.add(name, taken_s)
        for name, each in runs.items():
            _say(f"killed in the tenth test: {name}")
            with _reported(table, name):
                table.left[name] = each.kill()
    return (table,)


@contextmanager
def _reported(table: Table, name: str) -> Iterator[None]:
    """What goes wrong in the block is said in the table."""
    try:
        yield
    except HarnessError as error:
        table.fail(name, str(error))


def glue_lines(contender: Contender) -> int:
    """Lines of its files that are neither empty nor a comment."""
    files = (path for path in (_PLACE / contender.folder).rglob("*") if path.is_file())
    texts = (path.read_text() for path in files if path.suffix != ".pyc")
    lines = (line.strip() for text in texts for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


class _Runs:
    """The runs of one contender, each in a folder of its own."""

    def __init__(
        self, name: str, contender: Contender, images: ShopImages | None, scratch: Path
    ) -> None:
        self._name = name
        self._contender = contender
        self._images = images
        self._scratch = scratch

    def measure(self) -> float:
        """Seconds of one run.

        Raises:
            HarnessError: not all of its tests passed.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch) as name:
            place = Path(name)
            return self._pass(place, self._laid(place))

    def _pass(self, place: Path, project: Path) -> float:
        began = time.perf_counter()
        runner = subprocess.Popen(
            self._argv(),
            cwd=project,
            env=self._environment(place),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = runner.communicate(timeout=_RUN_S)
        except BaseException as error:
            runner.kill()
            runner.wait()
            self._traces(place, runner).remove()
            if isinstance(error, subprocess.TimeoutExpired):
                raise HarnessError(f"run {self._name}", observed=str(error)) from error
            raise
        taken_s = time.perf_counter() - began
        if runner.returncode or not _PASSED.search(said):
            tail = said.splitlines()[-30:]
            raise HarnessError(f"run {self._name}", observed="not 20 passed", tail=tail)
        return taken_s

    def _traces(self, place: Path, runner: subprocess.Popen[str]) -> Traces:
        return Traces(
            temporary=place / "tmp",
            image=self._images.prefix if self._images and self._contender.engine else "",
            project=f"pytest{runner.pid}",
        )

    def kill(self) -> tuple[Left, Left]:
        """What SIGKILL in the middle of the suite leaves, and what is left of it after the next run.

        It is removed then.

        Raises:
            HarnessError: the suite did not get so far.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch) as name:
            place = Path(name)
            held, log = place / "held", place / "log"
            project = self._laid(place)
            environment = {
                **self._environment(place),
                "STRANGERS_HOLD": str(held),
                "PYTHONPATH": str(_PLACE),
            }
            with log.open("w") as output:
                runner = subprocess.Popen(
                    [*self._argv(), "-p", "hold"],
                    cwd=project,
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            traces = self._traces(place, runner)
            try:
                started = until_blocking(
                    lambda: "held" if held.exists() else runner.poll() is not None and "ended",
                    seconds=_RUN_S,
                    action=f"bring {self._name} to its tenth test",
                )
                if started == "ended":
                    tail = log.read_text().splitlines()[-30:]
                    raise HarnessError(f"kill {self._name}", observed="it ended", tail=tail)
                runner.kill()
                runner.wait()
                killed = traces.settled()
                self._pass(place, project)
                return killed, traces.look()
            finally:
                runner.kill()
                runner.wait()
                traces.remove()

    def _argv(self) -> list[str]:
        contender = self._contender
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        words += ["-p", contender.plugin] if contender.plugin else []
        if contender.installed:
            words += [f"--postgresql-exec={usable_binaries().directory / 'pg_ctl'}"]
            if os.geteuid() == 0:
                words = ["unshare", "--map-user=1000", "--map-group=1000", "--", *words]
        return words

    def _laid(self, place: Path) -> Path:
        """The folder of the project: the suite and the glue, beside each other as a stranger has them."""
        place.chmod(0o711)  # a server's account may have to pass through
        home = place / "project"
        for folder in ("suite", self._contender.folder):
            shutil.copytree(_PLACE / folder, home, dirs_exist_ok=True)
        (place / "tmp").mkdir()
        return home

    def _environment(self, place: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TMPDIR": str(place / "tmp"),
            "XDG_CACHE_HOME": str(self._scratch / "cache"),
            **(self._images.environment if self._images else {}),
        }


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
