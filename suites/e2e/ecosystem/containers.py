"""Butlers in containers, when the subject file has a table ``[container]``.

[container]
image = "my/butlers:1"        # at hand; or, to build one:
dockerfile = "Dockerfile"     # with ARG BASE, on the harness's image of that name
base = "python"
context = ["butlers"]         # folders and files that go into the build
read = ["../../../roster"]    # directories the butlers may read
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from harness_core.base import limits
from harness_core.base.bridge import blocking
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.containers import (
    ContainerChild,
    ContainerCommand,
    build_subject_image,
    open_container_child,
)
from harness_core.infrastructure.engine import find_engine
from harness_core.process import Run
from harness_core.system.parts import StartChild
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.subject_file import tables_of


def image_name(subject: Subject) -> str:
    """A word for the subject's image, from its name."""
    return re.sub(r"[^a-z0-9]+", "-", subject.name.lower()).strip("-")


async def container_starter(
    run: Run,
    subject: Subject,
    *,
    port_of: Callable[[str], int],
    roster: Path,
    say: Callable[[str], None] = lambda _text: None,
) -> StartChild | None:
    """How to start this subject's butlers in containers; ``None`` when they are processes.

    Args:
        run: what they belong to.
        subject: what is tested.
        port_of: the port that a butler is given.
        roster: the roster in use, which they must see.
        say: gets a line for what takes long.

    Raises:
        HarnessError: no engine, or the image cannot be built.
    """
    table = tables_of(subject).container
    if table is None:
        return None
    engine = await blocking(find_engine)
    image = table.image or await blocking(
        build_subject_image,
        engine,
        name=image_name(subject),
        base=table.base,
        dockerfile=subject.resolve(table.dockerfile),
        context=[subject.resolve(path) for path in table.context],
        say=say,
    )
    read = {roster, *(subject.resolve(path) for path in table.read)}

    def start(
        argv: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str],
        evidence: Evidence,
        grace_s: float = limits.CHILD_STOP_GRACE_S,
    ) -> AbstractAsyncContextManager[ContainerChild]:
        own = {key: value for key, value in env.items() if key != "PATH"}
        command = ContainerCommand(
            name=name,
            image=image,
            argv=argv,
            env=own,
            read=sorted(read),
            write=[Path(env["HOME"]), Path(env["TMPDIR"])],
            port=port_of(name),
        )
        return open_container_child(run, command, engine=engine, evidence=evidence, grace_s=grace_s)

    return start
