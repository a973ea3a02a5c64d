"""Staging from two terminals: up, ps, logs, down, and every way to end it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_core.base.errors import HarnessError
from harness_core.base.wait import until_blocking
from harness_core.system.staging import ask, take_down

#: A boot or an end of something that does nothing, on a loaded machine.
SOON_S = 30.0

ENVIRONMENT = """
import os, sys
from contextlib import asynccontextmanager
import trio

class Thing:
    def __init__(self, child):
        self.child = child

    def describe(self):
        return {"parts": [{
            "name": "thing", "kind": "a thing", "state": "running", "address": "127.0.0.1:1",
            "pid": self.child.pid, "log": str(self.child.log),
            "urls": {"database": "postgresql://me:hunter2secret@127.0.0.1:1/x"},
            "secrets": {"KEY": "sk-secret"},
        }]}

PROGRAM = "import signal; print('hello from it', flush=True); signal.pause()"

@asynccontextmanager
async def open_environment(run, subject, *, options, evidence, say):
    async with run.child([sys.executable, "-c", PROGRAM], name="thing", evidence=evidence) as child:
        say(f"began pid={child.pid}")
        if options.llm == "live":
            await trio.sleep_forever()
        yield Thing(child)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with one suite that has an environment."""
    suite = tmp_path / "tree" / "suites" / "toy"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text(
        '[suite]\nname = "toy"\nsummary = "a toy"\ngroup = "test"\n'
        'environment = "toy:open_environment"\n'
        '[[session]]\nname = "toy"\nsummary = "Play."\n'
    )
    (suite / "toy.py").write_text(ENVIRONMENT)
    (tmp_path / "tree" / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    (tmp_path / "state").mkdir(mode=0o711)
    return tmp_path / "tree"


def harness(root: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Another terminal."""
    return subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", *words],
        cwd=cwd or root,
        env=environment(root),
        capture_output=True,
        text=True,
        timeout=SOON_S * 4,
        check=False,
    )


def environment(root: Path) -> dict[str, str]:
    """With runs of its own."""
    own = {key: value for key, value in os.environ.items() if key != "HARNESS_SUBJECT_BIN"}
    return own | {"HARNESS_STATE_DIR": str(root.parent / "state")}


def runs(root: Path) -> list[dict]:
    """What `harness ps` sees."""
    return json.loads(harness(root, "ps", "--json").stdout)


@contextmanager
def up(
    root: Path, *words: str, until: str = "another terminal", uv: Path | None = None
) -> Iterator[subprocess.Popen]:
    """`harness up` in a terminal of its own, once it has said ``until``."""
    output = root.parent / "up.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness_core.front.cli", "up", *words],
            cwd=root,
            env=environment(root) | ({"UV": str(uv)} if uv else {}),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until_blocking(
            lambda: until in said(root) or process.poll() is not None,
            seconds=SOON_S,
            action=f"see {until!r}",
        )
        yield process
    finally:
        process.kill()
        process.wait()


def said(root: Path) -> str:
    """What `harness up` has printed so far."""
    return (root.parent / "up.txt").read_text(encoding="utf-8")


def left(root: Path) -> list[str]:
    """Directories of runs that are left."""
    return sorted(path.name for path in (root.parent / "state" / "runs").iterdir())


def test_it_is_seen_from_another_terminal_and_taken_down(root: Path) -> None:
    """Up prints every address and pid, ps shows the same, logs what it prints; down ends it for good.

    Passwords and keys stand in no table and no JSON, unless they are asked for.
    """
    with up(root) as process:
        (run,) = runs(root)
        (part,) = run["parts"]

        assert ("toy", "up", True, process.pid) == (
            run["holds"],
            run["state"],
            run["staged"],
            run["pid"],
        )
        assert str(part["pid"]) in said(root)
        assert "127.0.0.1:1" in said(root)
        table, revealed = harness(root, "ps").stdout, harness(root, "ps", "--reveal").stdout
        shown = said(root) + table + json.dumps(run)

        assert "thing" in table
        assert [] == [secret for secret in ("hunter2secret", "sk-secret") if secret in shown]
        assert "hunter2secret" in revealed
        assert "KEY=sk-secret" in revealed
        assert "thing | hello from it\n" == harness(root, "logs", "thing").stdout
        done = harness(root, "down")

        assert (0, "") == (done.returncode, done.stderr)
        assert 0 == process.wait(SOON_S)
        assert not Path(f"/proc/{part['pid']}").exists()
    assert [] == left(root)
    assert "nothing is left" in said(root)


def test_a_host_that_hangs_up_before_it_answers_is_taken_down(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked, and it ends: that its answer is lost on the way is no error."""
    monkeypatch.setenv("HARNESS_STATE_DIR", str(root.parent / "state"))

    def hangs_up(path: Path, word: str) -> None:
        ask(path, word)
        raise HarnessError(f"ask the host of this run to {word}", observed="it hung up")

    monkeypatch.setattr("harness_core.system.staging._down.ask", hangs_up)
    lines: list[str] = []
    with up(root) as process:
        take_down(None, every=False, root=root, say=lines.append)

        assert 0 == process.wait(SOON_S)
    assert lines[0].endswith("(toy) is down")
    assert [] == left(root)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_it_down(root: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end everything in order, with status 0."""
    with up(root) as process:
        process.send_signal(number)

        assert 0 == process.wait(SOON_S), said(root)
    assert [] == left(root)
    assert f"got {number.name}" in said(root)


def test_a_signal_in_mid_boot_ends_the_boot(root: Path) -> None:
    """Stopped while it boots, it leaves nothing and says that it was never up, with status 1."""
    with up(root, "--llm", "live", until="began pid=") as process:
        pid = int(said(root).partition("began pid=")[2].split()[0])

        assert ["booting"] == [run["state"] for run in runs(root)]
        process.send_signal(signal.SIGINT)

        assert 1 == process.wait(SOON_S), said(root)
        assert not Path(f"/proc/{pid}").exists()
    assert [] == left(root)
    assert "before it was up" in said(root)


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ((), "may spend 0.70 USD (budget_usd in toy/suite.toml)"),
        (("--llm-budget-usd", "0.3"), "may spend 0.30 USD (--llm-budget-usd)"),
    ],
    ids=["suite", "command-line"],
)
def test_what_models_may_cost_is_said_before_it_boots(root: Path, words, limit) -> None:
    """With a provider, the limit and who set it; offline nothing is spent and nothing said."""
    toml = root / "suites" / "toy" / "suite.toml"
    toml.write_text(
        toml.read_text().replace('group = "test"\n', 'group = "test"\nbudget_usd = 0.7\n')
    )
    with up(root, "--llm", "live", *words, until="began pid=") as process:
        process.send_signal(signal.SIGINT)
        process.wait(SOON_S)

    assert said(root).startswith(f"models (live): toy {limit}\n")


def test_down_of_a_dead_one_sweeps_it(root: Path) -> None:
    """After SIGKILL to its holder, ps calls it dead and down removes what it left."""
    with up(root) as process:
        process.kill()
        process.wait()
        (dead,) = runs(root)

        assert ("dead", "toy") == (dead["state"], dead["holds"])
        assert "harness sweep" in harness(root, "ps").stdout
        done = harness(root, "down", dead["id"])

        assert 0 == done.returncode, done.stderr
        assert "was dead" in done.stdout
    assert [] == left(root)


def test_logs_are_followed_until_it_ends(root: Path) -> None:
    """``logs -f`` goes on, and ends by itself when the environment does."""
    with (
        up(root) as process,
        subprocess.Popen(
            [sys.executable, "-m", "harness_core.front.cli", "logs", "-f"],
            cwd=root,
            env=environment(root),
            stdout=subprocess.PIPE,
            text=True,
        ) as following,
    ):
        assert following.stdout is not None
        assert "thing | hello from it\n" == following.stdout.readline()
        process.send_signal(signal.SIGTERM)

        assert 0 == following.wait(SOON_S)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(("up", "nothing"), "one of toy", id="unknown-suite"),
        pytest.param(("down",), "holds anything", id="nothing-to-take-down"),
        pytest.param(("logs",), "holds anything", id="nothing-to-read"),
    ],
)
def test_bad_input_is_one_clear_error(root: Path, words: tuple[str, ...], named: str) -> None:
    """One line, status 2, no traceback, and what to do."""
    done = harness(root, *words)

    assert 2 == done.returncode
    assert named in done.stderr
    assert 1 == len(done.stderr.splitlines()), done.stderr


def test_several_are_told_apart(root: Path) -> None:
    """With two of them down wants to know which; --all takes down both."""
    with up(root) as one:
        first = runs(root)[0]["id"]
        (root.parent / "up.txt").unlink()
        with up(root) as two:
            refused = harness(root, "down")

            assert 2 == refused.returncode
            assert first in refused.stderr
            assert 2 == harness(root, "logs", "thing", "--run", "zzz").returncode
            assert "hello" in harness(root, "logs", "thing", "--run", first).stdout
            assert 0 == harness(root, "down", "--all").returncode
            assert [0, 0] == [one.wait(SOON_S), two.wait(SOON_S)]
    assert [] == left(root)


def test_runs_of_other_trees_count_when_they_are_named_alone(root: Path) -> None:
    """Without an id, logs and down mean the run of this tree, and say which others there are."""
    other = root.with_name("other")
    shutil.copytree(root, other)
    with up(other) as elsewhere:
        (theirs,) = (run["id"] for run in runs(root))
        (root.parent / "up.txt").unlink()
        refused = [harness(root, command) for command in ("logs", "down")]

        for done in refused:
            assert 2 == done.returncode
            assert f"{theirs} (toy, in {other})" in done.stderr
        assert "hello" in harness(root, "logs", cwd=root.parent).stdout  # of no tree: all count
        with up(root) as here:
            assert {str(root), str(other)} == {run["root"] for run in runs(root)}
            assert "thing | hello from it\n" == harness(root, "logs").stdout
            assert 0 == harness(root, "down").returncode
            assert 0 == here.wait(SOON_S)
        assert 0 == harness(root, "down", theirs[:-1]).returncode
        assert 0 == elsewhere.wait(SOON_S)
    assert [] == left(root)


def test_libraries_that_are_missing_are_named_with_the_one_command(root: Path) -> None:
    """All of what the suite's group asks for at once, not the first that an import misses."""
    (root / "pyproject.toml").write_text(
        "[dependency-groups]\n"
        'base = ["no-such-one>=2,<3"]\n'
        'test = [{ include-group = "base" }, "pytest>=8", "no-such-two[extra]"]\n'
    )
    toy = root / "suites" / "toy" / "toy.py"
    toy.write_text("import no_such_one\n" + toy.read_text())
    done = harness(root, "up")
    (line,) = done.stderr.splitlines()

    assert 2 == done.returncode
    assert "2 of the libraries that suite toy asks for are not installed" in line
    assert "(No module named 'no_such_one')" in line
    assert line.endswith(
        f"Run `{sys.executable} -m pip install 'no-such-one>=2,<3' 'no-such-two[extra]'`."
    )


def test_it_finds_where_the_commands_of_its_reference_system_are(root: Path) -> None:
    """No variable is to be set: ``{bin}`` is what nox, or an earlier ``up``, has installed."""
    suite = root / "suites" / "toy"
    (suite / "suite.toml").write_text(
        (suite / "suite.toml")
        .read_text()
        .replace('group = "test"\n', 'group = "test"\nsubject = "subject.toml"\n')
    )
    (suite / "subject.toml").write_text(
        '[subject]\nname = "toy"\nproject = "."\nargv = ["{bin}/toy"]\n'
    )
    (suite / "pyproject.toml").write_text("[project]\n")
    uv = root.parent / "uv"
    uv.write_text(
        '#!/bin/sh\n[ "$1" = venv ] || exit 0\nfor last; do :; done\nmkdir -p "$last/bin"\n'
    )
    uv.chmod(0o755)
    toy = suite / "toy.py"
    toy.write_text(
        toy.read_text().replace("began pid=", "{os.environ['HARNESS_SUBJECT_BIN']} pid=")
    )
    with up(root, uv=uv):
        assert f"{root}/.nox/toy-subject/bin pid=" in said(root)
    with up(root, uv=Path("/nowhere/uv")):  # and nothing is installed again
        assert f"{root}/.nox/toy-subject/bin pid=" in said(root)


def test_an_opener_that_is_not_there_is_named(root: Path) -> None:
    """A wrong ``environment`` in suite.toml is an error with file and key."""
    toml = root / "suites" / "toy" / "suite.toml"
    toml.write_text(toml.read_text().replace("toy:open_environment", "toy:missing"))
    done = harness(root, "up")

    assert 2 == done.returncode
    assert "suite.environment" in done.stderr
    assert str(toml) in done.stderr
