"""What a butler's file may not say: one clear error that names file and key, and nothing is started.

Each start is expected to end by itself: the good file's too, for the port is the running butler's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.resilience.test_boot_failures import attempt_with

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
