"""The reference launcher on a terminal: what is typed, and what the agent has of it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Callable, Iterator

import pytest

from suites.parity.shell import BACKENDS, PATIENCE_S, Shell, bot_bottle, expect_same
from suites.parity.tools.guest import script_that_answers

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]


@pytest.fixture
def terminal() -> Iterator[Callable[[Shell, list[str], str], tuple[int, str]]]:
    """Runs a command on a terminal and answers its prompts: its exit status, and what was shown."""
    opened: list[int] = []

    def run(shell: Shell, words: list[str], typed: str) -> tuple[int, str]:
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(shell.cwd)
            os.execve(bot_bottle(), [bot_bottle(), *words], shell.environ())
        opened.append(master)
        shown = b""
        while select.select([master], [], [], PATIENCE_S)[0]:
            try:
                part = os.read(master, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
            if b"canary-message" in shown and typed:
                os.write(master, typed.encode())
                typed = ""
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), shown.decode(errors="surrogateescape")

    yield run
    for each in opened:
        os.close(each)


@pytest.mark.parametrize("engine", BACKENDS)
def test_what_is_typed_is_not_shown(
    shell: Shell,
    engine: str,
    terminal: Callable[[Shell, list[str], str], tuple[int, str]],
) -> None:
    """A prompt says what it asks for, and shows nothing of the answer; the agent has a terminal."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    manifest.write_text('---\nimage: harness/bottle:1\nenv:\n  TYPED: "?canary-message"\n---\n')
    script = script_that_answers("the agent was here", "", 9)
    words = ["start", "dev", "--backend", engine, "--", "sh", "-c", script]
    status, shown = terminal(shell, words, "canary-typed 'x' =\n")

    expect_same("exit status", 9, status)
    assert "canary-message" in shown, f"the prompt says what for: found {shown!r}"
    assert "the agent was here" in shown, f"the agent's output is shown: found {shown!r}"
    assert "canary-typed" not in shown, f"what is typed is not shown: found {shown!r}"
    agent = [call for call in shell.commands.calls() if script in call["argv"]]
    expect_same("terminals of the agent", [True], [call["tty"] for call in agent])
    assert "-t" in agent[0]["argv"], f"the agent asks for a terminal: found {agent[0]['argv']}"
    made = next(call for call in shell.commands.calls() if {"run", "create"} & set(call["argv"]))
    assert "canary-typed 'x' =" in made["env"].values(), (
        "what is typed reaches the tool by its environment: expected it there, found "
        f"{sorted(made['env'])}"
    )


def on_a_terminal(
    shell: Shell, words: tuple[str, ...], *, which: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command with a terminal for its input alone, or for its output alone."""
    ours, theirs = os.openpty()
    try:
        return subprocess.run(
            [bot_bottle(), *words],
            env=shell.environ(),
            cwd=shell.cwd,
            stdin=theirs if which == "input" else subprocess.DEVNULL,
            stdout=theirs if which == "output" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("engine", BACKENDS)
def test_the_agent_has_a_terminal_when_its_input_is_one(shell: Shell, engine: str) -> None:
    """At a start and at a resume: a tool that is to make a terminal of another input refuses."""
    agent = ("--", "sh", "-c", script_that_answers("", "", 0))
    on_a_terminal(shell, ("start", "dev", "--backend", engine, "--preserve", *agent), which="input")
    on_a_terminal(shell, ("start", "dev", "--backend", engine, *agent), which="output")
    (identity,) = shell.recorded()
    on_a_terminal(shell, ("resume", identity, *agent), which="input")
    on_a_terminal(shell, ("resume", identity, *agent), which="output")

    found = ["-t" in call["argv"] for call in shell.commands.calls() if agent[-1] in call["argv"]]
    expect_same(
        f"whether the agent on {engine} gets a terminal, when the launcher has one for its input "
        "and for its output, at starts and at resumes",
        [True, False] * 2,
        found,
    )
