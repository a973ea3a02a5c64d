"""The images of the contenders that need some, under names that are this run's alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks._postgres import variable
from harness_core.infrastructure.containers import build_images, engine_client, image_tag
from harness_core.infrastructure.engine import find_engine

__all__ = ["ShopImages", "open_images"]

_RYUK: Final = "testcontainers/ryuk"

#: Where there is docker-compose 1, and no compose of docker's. It has no --wait: the glue waits.
_PLUGIN: Final = """#!/bin/sh
if [ "$1" = docker-cli-plugin-metadata ]; then
    echo '{"SchemaVersion":"0.1.0","Vendor":"docker-compose","Version":"1"}'
    exit
fi
shift
for word; do
    shift
    [ "$word" = --wait ] && word=-d
    set -- "$@" "$word"
done
exec docker-compose "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopImages:
    """What contenders with containers are given.

    Attributes:
        prefix: of every image that a contender is given.
        environment: what their compose file and conftest read, and how they reach the engine.
        remarks: what is otherwise than its author has it, by contender.
    """

    prefix: str
    environment: Mapping[str, str]
    remarks: Mapping[str, str]


@contextmanager
def open_images(place: Path) -> Iterator[ShopImages]:
    """Images of Debian's PostgreSQL and Python, as ``harness images`` makes them; names go at the end.

    Args:
        place: a directory to be made, for docker's own files.

    Raises:
        HarnessError: no engine, or no image can be made.
    """
    engine = find_engine()
    place.mkdir()
    prefix = f"strangers-{os.getpid()}"
    build_images(engine, names=("postgres", "python"), say=_say)
    names = {name: f"{prefix}/{name}:1" for name in ("postgres", "python", "shop")}
    remarks = {}
    with variable("DOCKER_HOST", engine.url), engine_client(engine) as client:
        for name in ("postgres", "python"):
            client.images.get(image_tag(name)).tag(names[name])
        ryuk = any(tag.startswith(_RYUK) for image in client.images.list() for tag in image.tags)
        environment = {
            **engine.environment,
            "DOCKER_CONFIG": str(place),
            "POSTGRES_IMAGE": names["postgres"],
            "PYTHON_IMAGE": names["python"],
            "SHOP_IMAGE": names["shop"],
        }
        if not ryuk:
            environment["TESTCONTAINERS_RYUK_DISABLED"] = "true"
            remarks["testcontainers"] = f"without Ryuk, whose image {_RYUK} is not here"
        if not _compose() and shutil.which("docker-compose"):
            plugin = place / "cli-plugins" / "docker-compose"
            plugin.parent.mkdir(parents=True)
            plugin.write_text(_PLUGIN)
            plugin.chmod(0o755)
            remarks["pytest-docker"] = "by docker-compose 1"
        try:
            yield ShopImages(prefix=prefix, environment=environment, remarks=remarks)
        finally:
            for name in names.values():
                with suppress(Exception):
                    client.images.remove(name)


def _compose() -> bool:
    program = shutil.which("docker") or "docker"
    return (
        subprocess.run([program, "compose", "version"], capture_output=True, check=False).returncode
        == 0
    )


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
