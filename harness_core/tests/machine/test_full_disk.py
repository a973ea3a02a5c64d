"""A full disk is one clear error: each test mounts a small file system of its own and fills it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT

# As root it takes no namespace of a user, which is what root lacks only where nobody has it.
pytestmark = [pytest.mark.real, pytest.mark.requires("namespaces")]

HEAD = """
import sys
from pathlib import Path

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.infrastructure.services import open_postgres

SMALL, OUTSIDE = map(Path, sys.argv[1:])


def fill(directory):
    with (directory / "filling").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 65536):
                pass
        except OSError as error:
            print("filled:", error.strerror)


async def main():
"""

TAIL = """
try:
    trio.run(main)
except HarnessError as error:
    print(type(error).__name__, error)
print("left:", sorted(path.name for path in SMALL.rglob("*") if path.is_file()))
"""

#: What is full, how it is met, and the beginning of what is said.
PROGRAMS = {
    "evidence-written": (
        """
    evidence = open_evidence(SMALL / "evidence")
    evidence.write_text("first.txt", "small")
    fill(SMALL)
    evidence.write_text("second.txt", "x" * 100_000)
""",
        "cannot write evidence to {small}/evidence/second.txt: the disk is full",
    ),
    "evidence-appended": (
        """
    evidence = open_evidence(SMALL / "evidence")
    for number in range(1_000_000):
        evidence.append_json("lines.jsonl", {"number": number, "text": "x" * 1000})
""",
        "cannot write evidence to {small}/evidence/lines.jsonl: the disk is full",
    ),
    "log-of-a-child": (
        """
    evidence = open_evidence(SMALL / "evidence")
    async with open_run(evidence=evidence) as run:
        async with run.child(["sh", "-c", "yes | head -c 20000000; sleep 60"], name="loud") as loud:
            await loud.wait()
""",
        "cannot write evidence to {small}/evidence/loud.log: the disk is full",
    ),
    "ledger-of-the-run": (
        """
    async with open_run(evidence=open_evidence(OUTSIDE / "evidence")) as run:
        fill(SMALL)
        for number in range(1000):
            run.ledger.record("note", text="x" * 1000)
""",
        "cannot write the run's ledger to {small}/runs/",
    ),
    "server-copied": (
        """
    evidence = open_evidence(OUTSIDE / "evidence")
    async with open_run(evidence=evidence) as run:
        async with open_postgres(run, evidence=evidence):
            pass
""",
        "cannot write the data directory of a PostgreSQL server to {small}/runs/",
    ),
    "server-initialised": (
        """
    import os

    os.environ["XDG_CACHE_HOME"] = str(OUTSIDE / "empty-cache")
    evidence = open_evidence(OUTSIDE / "evidence")
    async with open_run(evidence=evidence) as run:
        async with open_postgres(run, evidence=evidence):
            pass
""",
        "cannot write the data directory of a PostgreSQL server to {small}/runs/",
    ),
    "server-started-again": (
        """
    evidence = open_evidence(OUTSIDE / "evidence")
    async with open_run(evidence=evidence) as run:
        async with open_postgres(run, evidence=evidence) as server:
            await server.stop()
            fill(SMALL)
            await server.start()
""",
        "cannot write what a PostgreSQL server starts with to {small}/runs/",
    ),
}

#: In MiB: two for what writes texts, less than a data directory takes, more than it takes.
SIZES = {"server-copied": 16, "server-initialised": 16, "server-started-again": 64}


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that a server's user may enter, which those of pytest's are not."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="harness-test-"))
    path.chmod(0o755)
    for name in ("small", "outside"):
        (path / name).mkdir()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def on_small_disk(place: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command with an empty file system of some MiB mounted at ``small``."""

    def run(
        argv: list[str], *, size_mib: int, inodes: str = "0", **env: str
    ) -> subprocess.CompletedProcess[str]:
        options = f"size={size_mib}m,mode=755,nr_inodes={inodes}"  # 0: as many as fit
        mount = f'mount -t tmpfs -o {options} none "$0" && exec "$@"'
        words = [*unshare(), "sh", "-c", mount, str(place / "small")]
        return subprocess.run(
            [*words, *argv],
            env=os.environ | env,
            cwd=place / "outside",
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def unshare() -> list[str]:
    """Make a mount namespace: as root, or as the same user with what it needs to mount."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *user, "--mount"]


@pytest.mark.parametrize("case", PROGRAMS)
def test_what_is_written_to_a_full_disk(case, on_small_disk, place):
    """One Unavailable: what could not be written, how much is free, and how to go on."""
    body, beginning = PROGRAMS[case]
    program = place / "program.py"
    program.write_text(HEAD + body + TAIL)
    small = place / "small"
    state = {} if "evidence" in beginning else {"HARNESS_STATE_DIR": str(small)}
    done = on_small_disk(
        [sys.executable, str(program), str(small), str(place / "outside")],
        size_mib=SIZES.get(case, 2),
        **state,
    )

    assert (0, "") == (done.returncode, done.stderr), done.stdout
    said = next(line for line in done.stdout.splitlines() if line.startswith("Unavailable "))
    assert beginning.format(small=small) in said
    free = re.search(
        r"the disk is full, (\d+ \w+) of (\d+) MiB are free on the file system of", said
    )
    assert free is not None, said
    assert SIZES.get(case, 2) == int(free[2])
    move = "HARNESS_STATE_DIR=DIR" if state else "--evidence DIR"
    assert f"Free some, or put it elsewhere: {move}." in said
    # Of a server that did not come up nothing is left to fill the disk.
    assert "PG_VERSION" not in done.stdout


SUITE = """
def test_that_fills_the_disk(evidence):
    for number in range(1_000_000):
        evidence.append("lines.txt", "x" * 1000)


def test_that_comes_after(tmp_path):
    assert tmp_path.is_dir()


def test_of_a_product_that_is_wrong():
    assert 1 == 2
"""


@pytest.fixture
def run_pytest(on_small_disk, place) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the suite above with evidence and report on the small disk."""
    (place / "outside/test_it.py").write_text(SUITE)

    def run(*more: str, **options: str) -> subprocess.CompletedProcess[str]:
        words = ["-m", "pytest", "test_it.py", "-p", "no:cacheprovider", "-p", "no:randomly"]
        where = ["--evidence", f"{place}/small/evidence", f"--junitxml={place}/small/report.xml"]
        done = on_small_disk([sys.executable, *words, *where, *more], size_mib=2, **options)

        assert "INTERNALERROR" not in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


@pytest.mark.runner
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_disk_that_fills_up_is_a_harness_error(run_pytest, place, workers):
    """Who met it is a HARNESS ERROR, the others are what they are, and the report's loss is said."""
    done = run_pytest(*workers)

    assert pytest.ExitCode.TESTS_FAILED == done.returncode
    assert re.search(
        r"^HARNESS ERROR .*test_it.py::test_that_fills_the_disk", done.stdout, re.MULTILINE
    )
    assert f"cannot write evidence to {place}/small/evidence/" in done.stdout
    assert f"cannot write the report of the run to {place}/small/report.xml" in done.stdout
    assert "1 failed, 1 passed, 1 error" in done.stdout


@pytest.mark.runner
def test_a_report_without_room_fails_a_run_that_passed(run_pytest, place):
    """A run of which nothing can be read afterwards did not succeed."""
    done = run_pytest("-k", "fills or comes")

    assert HARNESS_ERROR_EXIT == done.returncode
    assert "1 passed, 1 deselected, 1 error" in done.stdout


@pytest.mark.runner
def test_a_disk_that_is_full_from_the_start_ends_a_run_of_workers(run_pytest, place):
    """One sentence, and the status of a run that could not test: no worker was started."""
    done = run_pytest("-n", "2", inodes="1")

    assert HARNESS_ERROR_EXIT == done.returncode
    assert f"cannot write evidence to {place}/small/evidence: no inode is left" in done.stdout
    assert "passed" not in done.stdout
