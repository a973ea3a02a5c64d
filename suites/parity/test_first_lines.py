"""A failure begins with who regressed: the field, what that side produced, and what the others did.

The reference launcher is made wrong on purpose for these; another launcher has no such switch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from harness_core.front.skips import not_run
from suites.parity.compare import ParityError
from suites.parity.sides import Body, Sides
from suites.parity.test_forwarded_env import launch_and_look
from suites.parity.test_secret_env import SecretRow, launch_and_use

pytestmark = pytest.mark.aside(
    "how a failure reads is the suite's own; the planted faults demand it too"
)

_VARIABLE: Final = "BOT_BOTTLE_FAULT"

TYPED: Final = SecretRow(
    id="typed", env={"TOKEN": "?"}, answers=(" canary ",), guest={"TOKEN": " canary "}
)
TWO: Final = launch_and_look({"FIRST": "one", "SECOND": "two"})

#: Planted fault → the scenario, what is expected of its environment, and the first line.
LINES: Final[dict[str, tuple[Body, dict[str, object], str]]] = {
    "docker-drops-second-literal": (
        TWO,
        {"env": {"FIRST": "one", "SECOND": "two"}},
        (
            "docker regressed: env 'SECOND': expected 'two', found absent "
            "(says the scenario; smolmachines 'two', bubblewrap 'two') [row]"
        ),
    ),
    "smolmachines-quotes-literals": (
        TWO,
        {"env": {"FIRST": "one", "SECOND": "two"}},
        (
            "smolmachines regressed: env 'FIRST': expected 'one', found '\"one\"' "
            "(says the scenario; docker 'one', bubblewrap 'one') [row]"
        ),
    ),
    "bubblewrap-env-inherited": (
        TWO,
        {"came along from the host": []},
        (
            "bubblewrap regressed: came along from the host[0]: expected absent, found 'ANTHROPIC_API_KEY' "
            "(says the scenario; docker absent, smolmachines absent) [row]"
        ),
    ),
    "smolmachines-secret-on-argv": (
        launch_and_use(TYPED),
        {"exposed": {}},
        (
            "smolmachines regressed: exposed 'argv[0]': expected absent, found 'TOKEN' "
            "(says the scenario; docker absent, bubblewrap absent) [row]"
        ),
    ),
    "secret-in-log": (
        launch_and_use(TYPED),
        {"exposed": {}},
        (
            "every side regressed: exposed 'log[0]': expected absent, "
            "found 'TOKEN' (says the scenario) [row]"
        ),
    ),
    "prompt-answer-stripped": (
        launch_and_use(TYPED),
        {"env": {"TOKEN": " canary "}},
        (
            "every side regressed: env 'TOKEN': expected ' canary ', "
            "found 'canary' (says the scenario) [row]"
        ),
    ),
}


@pytest.fixture
def plant(request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Switches a fault of the reference launcher on until the test ends."""
    if request.config.getoption("--subject"):
        not_run(
            "options", "the launcher under test is not the reference, which alone has these faults"
        )
    before = os.environ.get(_VARIABLE)

    def switch_on(name: str) -> None:
        os.environ[_VARIABLE] = name

    yield switch_on
    os.environ.pop(_VARIABLE, None)
    if before is not None:
        os.environ[_VARIABLE] = before


@pytest.mark.simulated("the sides are those of the models")
@pytest.mark.parametrize("fault", LINES)
def test_the_first_line_names_who_regressed(
    sides: Sides, plant: Callable[[str], None], fault: str
) -> None:
    """One backend where one is wrong, all of them where all are, and what each side produced."""
    body, expected, line = LINES[fault]
    plant(fault)
    seen = sides.run(body)

    with pytest.raises(ParityError) as caught:
        sides.check_seen(None, "row", seen, expected=expected)

    first = str(caught.value).splitlines()[0]

    assert line == first, f"a failure begins with who regressed: expected {line}, found {first}"
