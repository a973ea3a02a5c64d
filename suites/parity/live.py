"""The live lane: the same scenarios on tools that are really there, looked at from inside the guest.

Commands run for real and are recorded all the same. A container that the launcher starts is given
the labels of the run on its way to the engine, so that ``harness sweep`` finds it should the run be
killed; nothing else about a command is changed.
"""

from __future__ import annotations

import os
import subprocess  # lint: allow driver: in the live lane the launcher's commands run for real
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from harness_core.infrastructure.containers import build_subject_image, run_labels
from harness_core.infrastructure.engine import Engine, find_engine
from harness_core.process import Run
from suites.parity.compare import Call, Reply
from suites.parity.world import World

__all__ = ["DESCRIPTOR", "RealCommands", "live_worlds"]

#: An argument that the number of a descriptor takes the place of: there ``inherited`` can be read.
DESCRIPTOR: Final = "{descriptor}"

#: Nothing a launcher runs takes this long.
_COMMAND_S: Final = 120.0

_IMAGE: Final = Path(__file__).with_name("tools") / "Dockerfile"


class RealCommands:
    """Runs commands for real, and records them.

    Args:
        run: the run that containers belong to.
        engine: the engine they are started in, where there is one.

    Attributes:
        calls: every call, in order, as the launcher made it.
    """

    def __init__(self, run: Run, *, engine: Engine | None) -> None:
        self.calls: list[Call] = []
        self._run = run
        self._engine = engine

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
    ) -> Reply:
        """Run one command to its end."""
        call = Call(argv=tuple(argv), env=dict(env or {}), stdin=stdin, inherited=inherited)
        self.calls.append(call)
        descriptor = os.memfd_create("inherited")
        try:
            os.write(descriptor, inherited)
            os.lseek(descriptor, 0, os.SEEK_SET)
            done = subprocess.run(
                [str(descriptor) if word == DESCRIPTOR else word for word in self._claimed(argv)],
                env=env,
                input=stdin,
                capture_output=True,
                pass_fds=[descriptor],
                timeout=_COMMAND_S,
                check=False,
            )
        finally:
            os.close(descriptor)
        return Reply(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def _claimed(self, argv: Sequence[str]) -> list[str]:
        """The command, with the labels of this run on a container that it starts."""
        words = list(argv)
        if PurePath(words[0]).name != "docker" or words[1:2] != ["run"] or self._engine is None:
            return words
        name = words[words.index("--name") + 1] if "--name" in words else ""
        self._run.ledger.record(
            "container", name=name, engine=self._engine.url, run=self._run.id, at=time.time()
        )
        labels = [f"--label={key}={value}" for key, value in run_labels(self._run.id).items()]
        return [*words[:2], *labels, *words[2:]]


def live_worlds(
    run: Run, *, docker: bool, say: Callable[[str], None]
) -> Callable[[str, Path], World]:
    """Worlds on the real tools of this machine.

    Args:
        run: the run that everything belongs to.
        docker: an engine is there and asked for; the images of bottles are built on it first.
        say: gets a line for what takes long.
    """
    engine = find_engine() if docker else None
    images = {}
    if engine is not None:
        for name in ("image", "other_image"):
            images[name] = build_subject_image(
                engine,
                name=f"bottle-{name.replace('_', '-')}",
                base="base",
                dockerfile=_IMAGE,
                context=[],
                say=say,
            )

    def make(backend: str, home: Path) -> World:
        home.mkdir(parents=True)
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        environ |= engine.environment if engine is not None else {}
        commands = RealCommands(run, engine=engine)
        return World(backend=backend, home=home, environ=environ, commands=commands, **images)

    return make
