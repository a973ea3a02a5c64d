"""Fixtures of the suite: the backends of the launcher under test, and worlds to run them in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from pyfakefs.fake_filesystem_unittest import Patcher

from harness_core.assurance.agent import VARIABLE
from harness_core.assurance.gates import closed_reason
from harness_core.base.errors import BadInput
from harness_core.front.skips import not_run
from suites.parity.compare import load_backends
from suites.parity.launcher import Backend
from suites.parity.live import live_worlds
from suites.parity.program import load_program
from suites.parity.shell import MANIFEST, Shell
from suites.parity.sides import Observation, Sides
from suites.parity.tools.command import Commands
from suites.parity.world import World, simulated

#: Tests that the reference system may have of its own need a session with `own_tests`.
collect_ignore = ["reference-system", "foreign"]

REFERENCE: Final = Path(__file__).with_name("backends.py")

#: Folders of the host that sandboxes bind, in a file system that starts empty.
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc")

#: Folders where every user of a host can write. Names: a path made here would be that of the real folder.
_SCRATCH: Final = ("/tmp", "/var/tmp", "/dev/shm")

_BACKENDS: Final = pytest.StashKey[Sequence[Backend]]()
_SEEN: Final = pytest.StashKey[dict[str, dict[str, Observation]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of the live lane."""
    parser.getgroup("parity").addoption(
        "--live",
        action="store_true",
        help="run the scenarios on the real tools: docker, bwrap, smolvm, as far as they are there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The markers for what one lane leaves out, and the launcher under test.

    Raises:
        pytest.UsageError: its adapter cannot be used.
    """
    config.addinivalue_line(
        "markers", "simulated(why): needs the models of the tools, and is left out by --live"
    )
    config.addinivalue_line("markers", "live(why): looks at a real tool, and needs --live")
    config.addinivalue_line(
        "markers",
        "library(why): looks into the launcher's own process, and needs one that is a library",
    )
    try:
        backends_of(config)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of each lane what only the other one can do."""
    other = "simulated" if config.getoption("--live") else "live"
    left_out = [item for item in items if item.get_closest_marker(other)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def backends_of(config: pytest.Config) -> Sequence[Backend]:
    """The backends under test: the reference's, or those of the file given with ``--subject``.

    A Python file is an adapter of a library, a TOML file says how a program is run.
    """
    if _BACKENDS not in config.stash:
        path = Path(config.getoption("--subject") or REFERENCE)
        is_program = path.suffix == ".toml"
        config.stash[_BACKENDS] = load_program(path) if is_program else load_backends(path)
    return config.stash[_BACKENDS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a ``backend`` runs once for each, and its id names it."""
    if "backend" in metafunc.fixturenames:
        live = metafunc.config.getoption("--live")
        metafunc.parametrize(
            "backend",
            [
                pytest.param(
                    backend,
                    id=backend.name,
                    marks=[pytest.mark.requires(backend.live)] if live else [],
                )
                for backend in backends_of(metafunc.config)
            ],
        )


def seen_before(config: pytest.Config) -> dict[str, dict[str, Observation]]:
    """What scenarios showed to tests before this one.

    Nothing while `harness mutate` runs: a scenario is then executed by the test of each backend, or
    the product would be what the first of them alone executes, which does not judge the others.
    """
    return {} if VARIABLE in os.environ else config.stash.setdefault(_SEEN, {})


@pytest.fixture(scope="session")
def backends(pytestconfig: pytest.Config) -> Sequence[Backend]:
    """All backends under test."""
    return backends_of(pytestconfig)


@pytest.fixture(scope="session")
def real_worlds(
    request: pytest.FixtureRequest, backends: Sequence[Backend]
) -> Callable[[str, Path], World]:
    """Worlds on the real tools; images for bottles are built first where docker is there."""
    docker = any(side.live == "docker" for side in backends) and not closed_reason("docker")
    run, say = request.getfixturevalue("harness_run"), request.getfixturevalue("progress")
    return live_worlds(run, docker=docker, say=say)


@pytest.fixture(autouse=True)
def _of_a_library(request: pytest.FixtureRequest, backends: Sequence[Backend]) -> None:
    """Leave out what can be seen of a library alone."""
    marker = request.node.get_closest_marker("library")
    if marker is not None and not all(backend.in_process for backend in backends):
        not_run("subject", f"the launcher is a program: {marker.args[0]}")


@pytest.fixture
def faked_home() -> Iterator[Path]:
    """A home directory that exists in memory only, and so does every other file."""
    with Patcher() as patcher:
        assert patcher.fs is not None
        for folder in _SYSTEM:
            patcher.fs.makedirs(folder, exist_ok=True)
        yield Path("/homes")


@pytest.fixture
def there(request: pytest.FixtureRequest, backends: Sequence[Backend], tmp_path: Path) -> Sides:
    """Every backend, in simulated worlds whose files are really there."""
    seen = seen_before(request.config)
    return Sides(backends=backends, make_world=simulated, homes=tmp_path, seen=seen)


@pytest.fixture
def sides(request: pytest.FixtureRequest, backends: Sequence[Backend]) -> Sides:
    """Every backend, in simulated worlds or in real ones; what a scenario showed is remembered."""
    seen = seen_before(request.config)
    if not request.config.getoption("--live"):
        in_memory = all(backend.in_process for backend in backends)
        home: Path = request.getfixturevalue("faked_home" if in_memory else "tmp_path")
        scratch = _SCRATCH if in_memory else ()
        return Sides(
            backends=backends, make_world=simulated, homes=home, seen=seen, scratch=scratch
        )
    there = [backend for backend in backends if not closed_reason(backend.live)]
    home, make = request.getfixturevalue("tmp_path"), request.getfixturevalue("real_worlds")
    return Sides(backends=there, make_world=make, homes=home, seen=seen)


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A home with one bottle that needs a variable of the host."""
    if request.config.getoption("--subject"):
        not_run(
            "options", "the launcher under test is not the reference, whose command line this is"
        )
    home = tmp_path / "home d'été"
    bottles = home / ".bot-bottle" / "bottles"
    bottles.mkdir(parents=True)
    (bottles / "dev.md").write_text(MANIFEST)
    cwd = tmp_path / "two words"
    cwd.mkdir()
    images = ("harness/bottle:1", "harness/bottle:2")
    return Shell(home=home, cwd=cwd, commands=Commands.made(tmp_path / "bin", images=images))
