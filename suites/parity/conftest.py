"""Fixtures of the suite: the backends of the launcher under test, and worlds to run them in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from pyfakefs.fake_filesystem_unittest import Patcher

from harness_core.parity import load_backends
from suites.parity.launcher import Backend
from suites.parity.sides import Observation, Sides
from suites.parity.world import simulated

#: The reference launcher has tests of its own, which its own environment runs.
collect_ignore = ["reference-system"]

REFERENCE: Final = Path(__file__).with_name("backends.py")

#: Folders of the host that sandboxes bind, in a file system that starts empty.
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc")

_BACKENDS: Final = pytest.StashKey[Sequence[Backend]]()
_SEEN: Final = pytest.StashKey[dict[str, dict[str, Observation]]]()


def backends_of(config: pytest.Config) -> Sequence[Backend]:
    """The backends under test: the reference's, or those of the file given with ``--subject``."""
    if _BACKENDS not in config.stash:
        given = config.getoption("--subject")
        config.stash[_BACKENDS] = load_backends(Path(given) if given else REFERENCE)
    return config.stash[_BACKENDS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a ``backend`` runs once for each, and its id names it."""
    if "backend" in metafunc.fixturenames:
        backends = backends_of(metafunc.config)
        metafunc.parametrize("backend", backends, ids=[backend.name for backend in backends])


@pytest.fixture(scope="session")
def backends(pytestconfig: pytest.Config) -> Sequence[Backend]:
    """All backends under test."""
    return backends_of(pytestconfig)


@pytest.fixture
def faked_home() -> Iterator[Path]:
    """A home directory that exists in memory only, and so does every other file."""
    with Patcher() as patcher:
        assert patcher.fs is not None
        for folder in _SYSTEM:
            patcher.fs.makedirs(folder, exist_ok=True)
        yield Path("/homes")
        shutil.rmtree("/homes", ignore_errors=True)


@pytest.fixture
def sides(faked_home: Path, pytestconfig: pytest.Config, backends: Sequence[Backend]) -> Sides:
    """Every backend in simulated worlds; what a scenario showed is kept for the whole run."""
    seen = pytestconfig.stash.setdefault(_SEEN, {})
    return Sides(backends=backends, make_world=simulated, homes=faked_home, seen=seen)
