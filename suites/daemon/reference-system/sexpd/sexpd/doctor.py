"""Would the daemon work here? Looks without changing anything, but for a file it removes again."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from sexpd.config import Config
from sexpd.gateways import LinkError, Links
from sexpd.shell import confined
from sexpd.shell.actuator import SHELL
from sexpd.shell.syntax import parser
from sexpd.skills import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the examination: ok, warn or fail."""

    state: str
    name: str
    detail: str


def examine(config: Config) -> Iterator[Finding]:
    """Look at everything the daemon leans on."""
    where = str(config.file or "no file, defaults and environment")
    yield Finding(state="ok", name="configuration", detail=where)
    yield _port(config)
    skills = Registry(config.skills)
    skills.refresh()
    if skills.problem:
        yield Finding(state="fail", name="skills", detail=skills.problem)
    else:
        names = ", ".join(skill.name for skill in skills.loaded)
        yield Finding(state="ok", name="skills", detail=f"{len(skills.loaded)}: {names}")
    for one in skills.rejected:
        yield Finding(state="warn", name="skills", detail=f"{one.name} rejected: {one.reason}")
    yield _need("shell", shutil.which(SHELL) or "", f"no {SHELL}")
    yield _need("shell parser", parser() or "", "no shfmt beside the interpreter")
    abi = confined.landlock_abi()
    state = "ok" if abi else "fail" if config["shell.confine"] == "required" else "warn"
    yield Finding(state=state, name="landlock", detail=f"version {abi}" if abi else "not there")
    if not config.providers:
        yield Finding(state="warn", name="providers", detail="none configured")
    for provider in config.providers:
        detail = f"{provider.name}: {provider.shape} at {provider.base_url}, {provider.model}"
        state = "ok" if provider.key else "warn"
        yield Finding(state=state, name="providers", detail=detail + ("" if provider.key else ", no key"))
    try:
        detail = f"{len(Links(config.data).all())} linked"
        yield Finding(state="ok", name="messaging", detail=detail)
    except LinkError as error:
        yield Finding(state="fail", name="messaging", detail=str(error))
    for program in ("tmux", "emacs"):
        found = shutil.which(program)
        state = "ok" if found else "warn"
        yield Finding(state=state, name=program, detail=found or "not there; not needed to run")


def _need(name: str, found: str, missing: str) -> Finding:
    return Finding(state="ok" if found else "fail", name=name, detail=found or missing)


def _port(config: Config) -> Finding:
    port = config["server.port"]
    with socket.socket() as probe:
        probe.settimeout(0.5)
        taken = port and probe.connect_ex((config["server.host"], port)) == 0
    detail = f"{port} is listened on already" if taken else f"{port} is free"
    return Finding(state="warn" if taken else "ok", name="port", detail=detail)
