"""The reference launcher as a person runs it; another launcher has a command line of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.front.skips import not_run

pytestmark = pytest.mark.aside(
    "the command line of the reference alone; launchers are reached by their API"
)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home with one bottle that needs a variable of the host."""
    if request.config.getoption("--subject"):
        not_run(
            "options", "the launcher under test is not the reference, whose command line this is"
        )
    bottles = tmp_path / ".bot-bottle" / "bottles"
    bottles.mkdir(parents=True)
    (bottles / "dev.md").write_text('---\nenv:\n  TOKEN: "${HOST_TOKEN}"\n---\n')
    return tmp_path


def bot_bottle(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("bot-bottle")), *words],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.simulated("one bottle is enough")
@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("start", "nothing"), "there is no bottle 'nothing'"),
        (("start", "dev"), "HOST_TOKEN"),
        (("start", "dev", "--backend", "krypton"), "krypton"),
        (("resume", "nothing"), "nothing is recorded"),
        (("approve", "../x"), "cannot find a proposal"),
    ],
)
def test_a_refusal_is_one_line(home: Path, words: tuple[str, ...], reported: str) -> None:
    """What is refused is one line on stderr and status 1, never a traceback."""
    done = bot_bottle(home, *words)

    assert 1 == done.returncode
    assert reported in done.stderr
    assert 1 == len(done.stderr.strip().splitlines())


@pytest.mark.requires("bubblewrap")
def test_a_command_runs_in_the_bottle_it_names(home: Path) -> None:
    """The backend of the flag runs the words after ``--``; their exit status is the launcher's."""
    script = "id -un; printf %s $TOKEN; exit 7"
    words = ("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)
    done = bot_bottle(home, *words, HOST_TOKEN="canary")

    assert (7, "node\ncanary") == (done.returncode, done.stdout), done.stderr
    assert [] == list((home / ".bot-bottle" / "guests").iterdir())
    assert [] == list((home / ".bot-bottle" / "state").iterdir())
