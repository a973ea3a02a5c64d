"""Any manifest and any sequence of operations is the same on every backend.

Hypothesis makes both up; a failure of a library shrinks to the smallest manifest that shows it, and
names the backend. The budget is that of the profile: ``--hypothesis-profile`` chooses another.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from suites.parity.compare import exposures
from suites.parity.launcher import Bottle, Launcher
from suites.parity.sides import Sides
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers
from suites.parity.world import World

pytestmark = pytest.mark.covers("PARITY-SECRET-ENV", "PARITY-FORWARDED-ENV", "PARITY-BOTTLE")

_settings = settings(deadline=None, suppress_health_check=list(HealthCheck))

#: For a launcher that is a program: each manifest takes a second, and hundreds would make it smaller.
_OF_A_PROGRAM: Final = settings(_settings, max_examples=10, phases=[Phase.generate])

NAMES: Final = st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}", fullmatch=True)
#: Letters, and whatever a shell, a file format or a terminal could take for something else. No NUL,
#: which no environment can hold.
TEXT: Final = st.text(
    "aZ0_ \t\n\r\x07\x1b\x7f\"'\\$`#=%{}()*?!~&|;<>-,.:/@éß🍾ש\u0301\u2028\ufeff", max_size=12
)
LITERALS: Final = TEXT.filter(lambda text: not text.startswith("?") and "${" not in text)
SECRETS: Final = TEXT.map(lambda text: f"canary{text}")

ENTRIES: Final = st.one_of(
    st.tuples(st.just("literal"), LITERALS),
    st.tuples(st.just("typed"), SECRETS),
    st.tuples(st.just("of-the-host"), SECRETS),
)
MANIFESTS: Final = st.dictionaries(NAMES, ENTRIES, max_size=5)

OPERATIONS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("exec"), TEXT, TEXT, st.integers(0, 255)),
        st.tuples(st.just("agent"), st.integers(0, 255)),
        st.tuples(st.just("look")),
        st.tuples(st.just("close")),
    ),
    max_size=5,
)


@pytest.mark.simulated("hundreds of guests")
def test_backends_do_the_same(sides: Sides) -> None:
    """The environment is as the manifest says, nothing leaks, and every operation answers alike."""
    is_library = all(backend.in_process for backend in sides.backends)

    @_settings if is_library else _OF_A_PROGRAM
    @given(manifest=MANIFESTS, operations=OPERATIONS)
    def every(manifest: Any, operations: Any) -> None:
        check_one(sides, manifest, operations)

    every()


def check_one(sides: Sides, manifest: Any, operations: Any) -> None:
    """One manifest, and what is done to its bottle."""

    def body(world: World, launcher: Launcher) -> dict[str, Any]:
        env = {}
        for name, (kind, value) in manifest.items():
            if kind == "literal":
                env[name] = value
            elif kind == "typed":
                env[name] = "?"
                world.answers.append(value)
            else:
                env[name] = f"${{OF_THE_HOST_{name}}}"
                world.environ[f"OF_THE_HOST_{name}"] = value
        world.write_bottle("dev", {"image": world.image, "env": env})
        answers: list[Any] = []
        with launcher.start("dev", backend=world.backend) as bottle:
            inside = read_environment(bottle.exec(ENVIRONMENT).stdout)
            for operation in operations:
                with world.may_refuse(launcher.errors) as outcome:
                    answers.append(perform(bottle, *operation))
                answers.append(outcome.happened)
                if operation[0] == "close":
                    break
        hidden = {name: value for name, (kind, value) in manifest.items() if kind != "literal"}
        return {
            "env": {name: inside[name] for name in manifest if name in inside},
            "exposed": exposures(hidden, world.readable()),
            "guests left": sorted(world.guests()),
            "answers": answers,
        }

    expected = {
        "env": {name: value for name, (_, value) in manifest.items()},
        "exposed": {},
        "guests left": [],
    }
    sides.check_seen(None, "property/backends-do-the-same", sides.run(body), expected=expected)


def perform(bottle: Bottle, kind: str, *details: Any) -> object:
    """One operation and what it answered."""
    match kind, details:
        case "exec", (stdout, stderr, code):
            result = bottle.exec(script_that_answers(stdout, stderr, code))
            return [result.stdout, result.stderr, result.returncode]
        case "agent", (code,):
            return bottle.exec_agent(["sh", "-c", script_that_answers("", "", code)], tty=False)
        case "look", ():
            return sorted(read_environment(bottle.exec(ENVIRONMENT).stdout).keys() & {"A", "_"})
    bottle.close()
    return "closed"
