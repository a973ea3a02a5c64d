"""The subject file of an ecosystem, read whole: a table or key that no adapter reads is a mistake.

What each table means stands where it is read: ``layout.py``, ``tools.py``, ``knobs.py``,
``containers.py``, ``worlds/credentialed.py``, ``golden/``; docs/subject.md has them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import field, structs

from harness_core.base.reading import Table
from harness_core.system.subject import Subject, Tables, Variables, load_subject
from suites.e2e.ecosystem.knobs import Knobs
from suites.e2e.ecosystem.layout import OWN_PROCESS, layout_of

__all__ = ["read_subject"]


class Container(Table, frozen=True):
    """``[container]``."""

    image: str = ""
    dockerfile: str = ""
    base: str = ""
    context: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


class Ticks(Table, frozen=True):
    """``[heartbeat.ticks]``."""

    table: str
    butler: str
    at: str
    success: str


class Heartbeat(Table, frozen=True):
    """``[heartbeat]``."""

    env: Variables = field(default_factory=dict)
    ticks: Ticks | None = None


class Migrations(Table, frozen=True):
    """A row of ``[[migrations]]``."""

    path: str
    version_table: str


class Model(Table, frozen=True):
    """``[model]``, which the gateway reads."""

    message: str = ""
    registry: str = ""
    answer: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    servers: tuple[str, ...] = ()


class Module(Table, frozen=True):
    """``[modules.NAME]``."""

    env: Variables = field(default_factory=dict)


class Modules(Table, frozen=True):
    """``[modules]``."""

    telegram: Module | None = None
    email: Module | None = None
    calendar: Module | None = None


class Golden(Table, frozen=True):
    """``[golden]``."""

    directory: str = ""


class Process(Table, frozen=True):
    """``[process]``."""

    layout: Literal["each", "one"] = "each"


class Profile(Table, frozen=True):
    """``[profile]``."""

    frames: str = ""


class Roster(Table, frozen=True):
    """``[roster]``."""

    directory: str


class Session(Table, frozen=True):
    """``[session]``."""

    environment: tuple[str, ...] = ()


class Tools(Table, frozen=True):
    """``[tools]``."""

    transport: str = ""
    call: str = ""
    list: str = ""
    result: str = ""
    error: str = ""


class EcosystemTables(Tables, frozen=True, kw_only=True):
    """Every table but ``[subject]`` and ``[env]``."""

    roster: Roster
    container: Container | None = None
    golden: Golden = Golden()
    heartbeat: Heartbeat | None = None
    knobs: Knobs = Knobs()
    migrations: tuple[Migrations, ...] = ()
    model: Model | None = None
    modules: Modules = Modules()
    ports: dict[str, int | str] = field(default_factory=dict)
    process: Process = Process()
    profile: Profile = Profile()
    session: Session = Session()
    tools: Tools | None = None


def read_subject(path: Path) -> Subject:
    """A subject file, with the capability that its layout of processes implies.

    Args:
        path: the file.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    subject = load_subject(path)
    subject.read_tables(EcosystemTables)
    if layout_of(subject).one_process:
        return subject
    return structs.replace(subject, capabilities=subject.capabilities | {OWN_PROCESS})
