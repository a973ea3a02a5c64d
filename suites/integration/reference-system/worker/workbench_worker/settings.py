"""The worker's settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench_foundation.settings import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """See ``compose.yaml`` for what each is set to.

    Attributes:
        data: where sessions live.
        controller_url: where the catalogue is looked up.
        catalogue_timeout_s: of one such look.
        callback_key: what reports of jobs are signed with.
        skills_url: of the git repository with the skills; empty for none.
        skills_timeout_s: the longest that asking it may take.
        callback_pause_s: before one that was not taken is sent again.
        output_bytes: kept of each stream of a command.
        memory_bytes: address space of a process behind walls.
    """

    api_key: str
    data: Path
    controller_url: str
    catalogue_timeout_s: float
    callback_key: str
    callback_pause_s: float
    skills_url: str
    skills_timeout_s: float
    health_timeout_s: float
    output_bytes: int
    memory_bytes: int
    file_bytes: int
    processes: int


def read_settings() -> Settings:
    """From the environment.

    Raises:
        ConfigError: something is missing or malformed.
    """
    env = Environment()
    return Settings(
        api_key=env.text("WORKBENCH_API_KEY"),
        data=Path(env.text("WORKBENCH_DATA")).resolve(),
        controller_url=env.url("WORKBENCH_CONTROLLER_URL"),
        catalogue_timeout_s=env.timeout("WORKBENCH_CATALOGUE_TIMEOUT_S", 10.0),
        callback_key=env.text("WORKBENCH_CALLBACK_KEY"),
        callback_pause_s=env.seconds("WORKBENCH_CALLBACK_PAUSE_S", 1.0),
        skills_url=env.values.get("WORKBENCH_SKILLS_URL", ""),
        skills_timeout_s=env.timeout("WORKBENCH_SKILLS_TIMEOUT_S", 5.0),
        health_timeout_s=env.timeout("WORKBENCH_HEALTH_TIMEOUT_S", 2.0),
        output_bytes=env.count("WORKBENCH_OUTPUT_BYTES", 200_000),
        memory_bytes=env.count("WORKBENCH_MEMORY_BYTES", 4 << 30),
        file_bytes=env.count("WORKBENCH_FILE_BYTES", 64 << 20),
        processes=env.count("WORKBENCH_PROCESSES", 64),
    )
