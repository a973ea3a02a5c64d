"""The docker driver, by the check that every driver passes, and a sweep after a killed runner."""

import sys
from pathlib import Path

import pytest

from harness_core.base.bridge import blocking
from harness_core.base.evidence import open_evidence
from harness_core.infrastructure.containers import build_images, engine_client, run_labels
from harness_core.infrastructure.engine import find_engine
from harness_core.process import installed_sweepers, open_run, sweep
from harness_core.system.compose import StackOptions, open_stack
from harness_core.tests.compose.runner import kill_a_runner
from harness_core.tests.conformance.stack import (
    SAMPLE_VARIABLE,
    check_stack,
    write_sample_stack,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.requires("docker", "compose")]


def things(run_id: str) -> list[str]:
    """Every container, network and volume of a run."""
    label = next(f"{key}={value}" for key, value in run_labels(run_id).items() if value == run_id)
    with engine_client(find_engine()) as client:
        found = [
            *client.containers.list(all=True, filters={"label": label}),
            *client.networks.list(filters={"label": label}),
            *client.volumes.list(filters={"label": label}),
        ]
        return [each.name for each in found]


async def test_the_docker_driver_keeps_every_promise_of_a_stack(tmp_path):
    """The docker driver passes the check that every driver passes."""
    (image,) = await blocking(build_images, find_engine(), names=("python",), say=print)
    evidence = open_evidence(tmp_path / "evidence")
    folder = tmp_path / "sample"
    numbers = iter(range(99))
    async with open_run(evidence=evidence) as run:

        def open_at(compose: Path):
            options = StackOptions(
                bin=str(compose.parent),
                environment={SAMPLE_VARIABLE: "from the caller", "SAMPLE_IMAGE": image},
            )
            where = evidence.child(f"stack-{next(numbers)}")
            return open_stack(run, compose, evidence=where, driver="docker", options=options)

        await check_stack(
            open_at,
            folder,
            python=sys.executable,
            passed_on="from the caller",
            leftovers=lambda: things(run.id),
        )


def test_a_sweep_removes_what_a_killed_runner_left(tmp_path, monkeypatch):
    """Containers, their network and their volumes."""
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "state"))
    (image,) = build_images(find_engine(), names=("python",), say=print)
    folder = tmp_path / "sample"
    write_sample_stack(folder, python=sys.executable)
    left = []
    run_id = kill_a_runner(
        folder, lambda run: left.extend(things(run)), "docker", f"SAMPLE_IMAGE={image}"
    )
    assert 4 < len(left), left

    report = sweep(sweepers=installed_sweepers())

    assert () == tuple(report.problems)
    assert [] == things(run_id)
