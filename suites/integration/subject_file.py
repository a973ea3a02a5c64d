"""The tables of a stack's subject file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from msgspec import field

from harness_core.base.reading import Misfit, Table, like
from harness_core.system.subject import Tables

__all__ = ["SERVICES", "CatalogueColumns", "Layout", "StackTables"]

#: The services of the contract → the capability without which a product does without them.
SERVICES: Final[Mapping[str, str]] = {
    "controller": "",
    "worker": "",
    "controller-worker": "temporal",
    "migrations": "database",
    "postgres": "database",
    "minio": "objects",
    "temporal": "temporal",
}


class Layout(Table, frozen=True):
    """``[stack]``.

    Attributes:
        compose: the compose file.
        api_key: name of the variable, in the environment of the controller, that holds the key which
            callers present.
        catalogue: name of the variable, in the environment of the controller, that holds the URL of the
            database with the role which reads the catalogue of parts.
        configuration: name of the variable, in the environment of the worker, that names its
            ``manufacturing_config.yaml``.
        backups_kept: name of the variable, in the environment of the controller's worker, that says how many
            backups keep their objects.
        callback_key: name of the variable, in the environment of the controller, that holds what reports of
            jobs are signed with.
        skills: name of the variable, in the environment of the worker, that holds the path of the git repository
            with the agents' skills.
        recorder: the service that records what is sent to Langfuse; empty for none.
        recorder_keys: names of the variables of the compose file that hold the keys to it; where they are
            empty, the stack does without Langfuse.
        telemetry: the service that records spans, sent to it as OTLP over HTTP; empty for none.
    """

    compose: Path
    api_key: str = "WORKBENCH_API_KEY"
    catalogue: str = "WORKBENCH_CATALOGUE_DATABASE_URL"
    configuration: str = "WORKBENCH_MANUFACTURING_CONFIG"
    backups_kept: str = "WORKBENCH_BACKUPS_KEPT"
    callback_key: str = "WORKBENCH_CALLBACK_KEY"
    skills: str = "WORKBENCH_SKILLS_URL"
    recorder: str = ""
    recorder_keys: tuple[str, ...] = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    telemetry: str = ""


class CatalogueColumns(Table, frozen=True):
    """``[catalogue]``.

    Attributes:
        part_id: the column with the id of a part.
        version: the column with the version that a row is of.
    """

    part_id: Annotated[str, like(r"\w+")] = "part_id"
    version: Annotated[str, like(r"\w+")] = "version"


class StackTables(Tables, frozen=True, kw_only=True):
    """Every table of a subject file but ``[subject]`` and ``[env]``.

    A stack has no `argv`: its compose file says how each service is started ([stack.md](../how-to/stack.md)).

    Attributes:
        stack: its compose file, and what variables of its services mean.
        catalogue: columns of the tables that the role of the catalogue reads.
        services: service of the contract → its name in the compose file, where that is another one.
    """

    stack: Layout
    services: dict[str, str] = field(default_factory=dict)
    catalogue: CatalogueColumns = CatalogueColumns()

    def __post_init__(self) -> None:
        for name in self.services:
            if name not in SERVICES:
                raise Misfit("services", found=name, expected=f"one of {', '.join(SERVICES)}")
