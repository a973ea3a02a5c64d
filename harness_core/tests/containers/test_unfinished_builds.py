"""Builds that fail, or are killed, leave no layers; foreign layers stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.containers import build_subject_image, engine_client, host_id
from harness_core.infrastructure.containers._build import _BUILDING

pytestmark = [pytest.mark.docker, pytest.mark.requires("docker")]

FAILING = "ARG BASE\nFROM ${BASE}\nRUN echo one > /one\nRUN echo two > /two\nRUN false\n"
WHOLE = "ARG BASE\nFROM ${BASE}\nRUN echo one > /one\n"


@pytest.fixture
def dangling(engine):
    """The untagged images of the engine now."""

    def look() -> set[str]:
        with engine_client(engine) as client:
            return {image.id for image in client.images.list(filters={"dangling": True})}

    return look


def build(engine, tmp_path: Path, text: str) -> str:
    """An image of a subject on our lowest one."""
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(text)
    return build_subject_image(
        engine, name="unfinished", base="base", dockerfile=dockerfile, context=[]
    )


def untagged(engine, base: str, **labels: str) -> str:
    """An untagged image on one of ours, as a foreign build leaves one."""
    with engine_client(engine) as client:
        container = client.containers.create(base, ["true"])
        try:
            changes = [f'LABEL {name}="{value}"' for name, value in labels.items()]
            return container.commit(changes=changes).id
        finally:
            container.remove()


def test_a_failed_build_leaves_nothing(engine, base, tmp_path, dangling):
    """The layers of the steps that succeeded go with the build; its words are in the error."""
    before = dangling()
    with pytest.raises(HarnessError) as refused:
        build(engine, tmp_path, FAILING)

    assert "returned a non-zero code: 1" in refused.value.observed
    assert before == dangling()


def test_only_layers_of_dead_builders_here_go(engine, base, tmp_path, dangling):
    """A killed builder's layers go with the next build; a live one's, and a stranger's, stay."""
    foreign = untagged(engine, base)
    elsewhere = untagged(engine, base, **{_BUILDING: "another-machine 1 1"})
    alive = untagged(engine, base, **{_BUILDING: f"{host_id()} {os.getppid()} {started()}"})
    dead = untagged(engine, base, **{_BUILDING: f"{host_id()} {os.getppid()} 1"})
    try:
        tag = build(engine, tmp_path, WHOLE)
        left = dangling() & {foreign, elsewhere, alive, dead}
    finally:
        with engine_client(engine) as client:
            for image in dangling() & {foreign, elsewhere, alive, dead}:
                client.images.remove(image)
    with engine_client(engine) as client:
        labels = client.images.get(tag).labels
        client.images.remove(tag)

    assert {foreign, elsewhere, alive} == left
    assert "" == labels[_BUILDING]


def started() -> int:
    """When the parent of this process was started."""
    from harness_core.process import start_time

    moment = start_time(os.getppid())
    assert moment is not None
    return moment
