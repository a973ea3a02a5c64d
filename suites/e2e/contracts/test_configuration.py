"""What a butler's file may not say: one clear error that names file and key, and nothing is started.

Each start is expected to end by itself: the good file's too, for the port is the running butler's.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import pytest
import trio

from harness_core.front.skips import not_run
from harness_core.ports import listeners
from harness_core.process import descendants
from suites.e2e.contracts.test_module_degradation import relocated
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.resilience.test_boot_failures import END_S, attempt_with
from suites.e2e.worlds.beside import open_beside
from suites.e2e.worlds.chaos import expect_soon

pytestmark = [
    pytest.mark.covers("E2E-LIFECYCLE", "E2E-DEGRADATION"),
    pytest.mark.capability("own-process"),
]

HEAD: Final = '[butler]\nname = "general"\nport = 8101\n'

TASK: Final = '[[butler.schedule]]\nname = "{name}"\ncron = "{cron}"\nprompt = "{prompt}"\n'

GOOD: Final = TASK.format(name="a", cron="0 0 29 2 *", prompt="look")

CIRCLE: Final = (("telegram", "email"), ("email", "telegram"))

#: A file → the words that its error must name beside the file itself.
WRONG: Final = {
    "no-toml": (f"{HEAD}description = ", ()),
    "no-name": ("[butler]\nport = 8101\n", ("name",)),
    "name-is-empty": ('[butler]\nname = ""\nport = 8101\n', ("name",)),
    "name-is-blank": ('[butler]\nname = " \\t"\nport = 8101\n', ("name",)),
    "name-is-a-number": ("[butler]\nname = 7\nport = 8101\n", ("name",)),
    "no-port": ('[butler]\nname = "general"\n', ("port",)),
    "port-is-text": ('[butler]\nname = "general"\nport = "8101"\n', ("port",)),
    "port-is-a-fraction": ('[butler]\nname = "general"\nport = 8101.5\n', ("port",)),
    "port-too-high": ('[butler]\nname = "general"\nport = 65536\n', ("port",)),
    "port-below-1": ('[butler]\nname = "general"\nport = -1\n', ("port",)),
    "text-for-a-list": (f'{HEAD}capabilities = "plants"\n', ("capabilities",)),
    "number-in-a-list": (f'{HEAD}capabilities = ["plants", 7]\n', ("capabilities",)),
    "number-for-a-text": (f"{HEAD}description = 7\n", ("description",)),
    "number-for-a-model": (f"{HEAD}[butler.runtime]\nmodel = 4\n", ("model",)),
    "number-for-a-database": (f"{HEAD}[butler.db]\nname = 4\n", ("name",)),
    "words-for-seconds": (f'{HEAD}[butler.shutdown]\ntimeout_s = "soon"\n', ("timeout_s",)),
    "seconds-below-0": (f"{HEAD}[butler.shutdown]\ntimeout_s = -1\n", ("timeout_s",)),
    "text-for-the-required": (f'{HEAD}[butler.env]\nrequired = "HOME"\n', ("required",)),
    "task-without-a-line": (HEAD + GOOD.replace('cron = "0 0 29 2 *"\n', ""), ("cron",)),
    "unknown-module": (f"{HEAD}[modules.pigeon]\n", ("pigeon",)),
    "unknown-key-of-a-module": (f'{HEAD}[modules.telegram]\nchatt_id = "1"\n', ("chatt_id",)),
    "mistyped-key-of-a-module": (f"{HEAD}[modules.telegram]\nchat_id = 17\n", ("chat_id",)),
    "modules-in-a-circle": (
        HEAD + "".join(f'[modules.{one}]\ndepends_on = ["{other}"]\n' for one, other in CIRCLE),
        ("telegram", "email"),
    ),
    "unknown-runtime": (f'{HEAD}[butler.runtime]\ntype = "parrot"\n', ("parrot",)),
    "no-cron-line": (HEAD + GOOD.replace("0 0 29 2 *", "at nine"), ("cron",)),
    "never": (HEAD + GOOD.replace("0 0 29 2 *", "0 0 31 2 *"), ("cron",)),
    "task-without-a-prompt": (HEAD + GOOD.replace('prompt = "look"\n', ""), ("prompt",)),
    "task-without-a-name": (HEAD + GOOD.replace('name = "a"\n', ""), ("name",)),
    "two-tasks-of-one-name": (HEAD + GOOD + GOOD, ("name",)),
}


@pytest.mark.parametrize(("content", "names"), WRONG.values(), ids=WRONG)
async def test_a_file_that_is_wrong_starts_nothing(
    ecosystem: Ecosystem, tmp_path: Path, content: str, names: tuple[str, ...]
) -> None:
    """The process ends with a status that is not 0, by an error in words, not a traceback."""
    folder = tmp_path / "general"
    folder.mkdir()
    file = folder / "butler.toml"
    file.write_text(content, encoding="utf-8")
    returncode, output = await attempt_with(ecosystem["general"], folder)

    assert returncode != 0, f"a wrong file ended as if all were well\n{output}"
    for word in (str(file), *names):
        assert word in output, f"the error does not name {word!r}\n{output}"
    assert "Traceback" not in output, f"a mistake of the operator is a traceback\n{output}"
    cut = [
        line for line in output.splitlines() if line.rstrip().endswith(("expected", "found", ":"))
    ]
    assert not cut, f"an error says what was found and what was expected; this one ends in {cut}"


#: A value that is text, whatever it would mean in a file.
ODD: Final = 'say "hi"\n[butler.shutdown]\ntimeout_s = "x" \\ ${HARNESS_ABSENT} $HARNESS_ABSENT'

#: Files in which nothing is wrong.
RIGHT: Final = {
    "the-good-one": GOOD,
    "a-value-with-quotes": 'description = "${HARNESS_ODD}"\n' + GOOD,
    "a-value-in-a-task": GOOD.replace("look", "${HARNESS_ODD} and ${HARNESS_ODD}"),
    "a-variable-in-a-comment": f"# of ${{HARNESS_ABSENT}}\n{GOOD}",
    "a-dollar": GOOD.replace("look", "spend $5, $HARNESS_ABSENT or {HARNESS_ABSENT}, 100 %"),
    "without-an-optional-one": f'[butler.env]\noptional = ["HARNESS_ABSENT"]\n{GOOD}',
}


@pytest.mark.disturbs
async def test_the_files_port_is_its_own_where_nothing_else_is_said(
    ecosystem: Ecosystem, tmp_path: Path
) -> None:
    """A butler whose environment names no port has that of its file, and finds that busy."""
    general = ecosystem["general"]
    port = str(general.port)
    folder = tmp_path / "general"
    folder.mkdir()
    environment = {key: value for key, value in general.environment.items() if value != port}
    if len(environment) == len(general.environment):
        not_run("subject", "its environment does not name the port of a butler alone")
    other = dataclasses.replace(
        general, command=relocated(general, folder), environment=environment
    )
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        own = listener.socket.getsockname()[1]
        (folder / "butler.toml").write_text(
            f'[butler]\nname = "general"\nport = {own}\n', encoding="utf-8"
        )
        async with open_beside(other) as process:

            async def over_or_elsewhere() -> bool:
                return process.returncode is not None or bool(ports_below(process.pid))

            await expect_soon("a butler whose port is busy ends", over_or_elsewhere, seconds=END_S)
            elsewhere = ports_below(process.pid)
        output = process.log.read_text(encoding="utf-8")

    assert not elsewhere, (
        f"the port of the file, {own}, is the butler's where the environment names none; it listens on "
        f"{elsewhere}\n{output}"
    )
    assert process.returncode == 1, (
        f"a busy port ends with status 1; found {process.returncode}\n{output}"
    )
    assert str(own) in output, f"the busy port is named, {own}\n{output}"


def ports_below(pid: int) -> set[int]:
    """The ports on which a process, or what it started, listens."""
    own = {pid, *descendants(pid)}
    return {entry.port for entry in listeners() if entry.pid in own}


@pytest.mark.parametrize("content", RIGHT.values(), ids=RIGHT)
async def test_the_good_file_is_not_refused(
    ecosystem: Ecosystem, tmp_path: Path, content: str
) -> None:
    """The file whose variations are refused is read: what is left to fail is the busy port.

    A variable stands for its value, as text and once; what does not ask for one lacks none.
    """
    folder = tmp_path / "general"
    folder.mkdir()
    (folder / "butler.toml").write_text(HEAD + content, encoding="utf-8")
    returncode, output = await attempt_with(ecosystem["general"], folder, HARNESS_ODD=ODD)

    assert returncode == 1, f"a busy port ends with status 1; found {returncode}\n{output}"
    assert str(ecosystem["general"].port) in output, (
        f"nothing is wrong with the file, and the busy port is not named\n{output}"
    )
    assert "HARNESS_ABSENT" not in output, f"a variable that is not asked for is missed\n{output}"
