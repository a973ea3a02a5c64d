"""Two launchers that are unlike the reference: the suite passes what is right, and names what is not.

They lie in `foreign/`, are programs, and can each be made wrong in six ways by a variable. The tests
here call tests of the suite, with such a launcher in the place of the one under test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.front.skips import NotRun, not_run
from suites.parity import test_forwarded_env as literals
from suites.parity import test_lifecycle as lifecycle
from suites.parity import test_manifest as manifest
from suites.parity import test_remediation as remediation
from suites.parity import test_resume as resume
from suites.parity import test_secret_env as secrets
from suites.parity.launcher import Backend
from suites.parity.program import load_program
from suites.parity.sides import Sides
from suites.parity.world import simulated

pytestmark = [
    pytest.mark.aside("calls tests of the suite, on other products"),
    pytest.mark.foreign,
    pytest.mark.simulated("the products run on the models of the tools"),
]

FOLDER: Final = Path(__file__).with_name("foreign")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A test of the suite, with the values of its parameters."""

    name: str
    test: Callable[..., None]
    values: Mapping[str, Any]


def part(name: str, test: Callable[..., None], /, **values: Any) -> Part:
    """One of :data:`PARTS`."""
    return Part(name=name, test=test, values=values)


def _row(rows: Sequence[Any], name: str) -> Any:
    return next(row for row in rows if row.id == name)


#: What is asked of each product: tests that its faults must turn red, and no others.
PARTS: Final = (
    part("two lines of dos", literals.test_literals_reach_the_guest, row=_row(literals.ROWS, "carriage-return")),
    part("a parent", literals.test_a_child_manifest_inherits, name="parent-alone"),
    part("a secret", secrets.test_secrets_reach_the_guest_alone, row=_row(secrets.ROWS, "prompt")),
    part("an empty variable", secrets.test_an_empty_host_variable_is_there),
    part("an unknown key", manifest.test_a_bad_manifest_is_refused, what="key-in-another-case"),
    part("a script", lifecycle.test_a_script_answers_as_it_did, stdout="out\n", stderr="err\n", code=42),
    part("a preserved bottle", resume.test_cleanup_leaves_what_is_preserved),
    part("a damaged record", resume.test_damaged_metadata_is_refused, what="not-json"),
    part("a resume elsewhere", resume.test_the_recorded_backend_is_stronger_than_the_chosen_one, other="smolmachines"),
    part("two resumes", resume.test_two_resumes_at_once_are_one),
    part("an approval", remediation.test_an_approved_proposal_goes_to_its_own_backend),
    part("an approval elsewhere", remediation.test_the_chosen_backend_has_no_say, other="smolmachines"),
    part("a guest of docker", lifecycle.test_a_script_runs_as_the_user_it_names, user="root"),
)  # fmt: skip


#: Parts that are asked beside each that a fault turns red; all of them take a minute.
_NEIGHBOURS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way in which a product is made wrong.

    Attributes:
        name: what its variable says.
        lines: part and backend → what the first line of the failure says. Nothing else may fail.
    """

    name: str
    lines: Mapping[tuple[str, str], str]


def fault(name: str, lines: Mapping[str, Mapping[str, str]]) -> Fault:
    """One of :data:`FAULTS`: part → backend, or both separated by a space → first line."""
    return Fault(
        name=name,
        lines={
            (what, backend): line
            for what, each in lines.items()
            for backends, line in each.items()
            for backend in backends.split()
        },
    )


_BOTH: Final = "docker smolmachines"

#: Product → its faults.
FAULTS: Final = {
    "jug": (
        fault(
            "secret-on-argv",
            {
                "a secret": {
                    "smolmachines": "smolmachines regressed: exposed 'argv[0]': expected absent, found 'TOKEN'"
                }
            },
        ),
        fault(
            "unknown-key-ignored",
            {
                "an unknown key": {
                    "docker": "docker regressed: commands[0]: expected absent, found",
                    "smolmachines": "smolmachines regressed: outcome: expected 'refused', found 'done'",
                }
            },
        ),
        fault(
            "lines-of-dos-folded",
            {
                "two lines of dos": {
                    _BOTH: r"every side regressed: env 'DOS': expected 'one\r\ntwo\r', found 'one\ntwo\r'"
                }
            },
        ),
        fault(
            "exit-status-is-one",
            {"a script": {_BOTH: "every side regressed: returncode: expected 42, found 1"}},
        ),
        fault(
            "preserved-is-removed",
            {
                "a preserved bottle": {
                    _BOTH: "every side regressed: resume: expected 'done', found 'refused'"
                }
            },
        ),
        fault(
            "approved-elsewhere",
            {
                "an approval elsewhere": {
                    "docker": "docker regressed: outcome: expected 'done', found 'refused'"
                },
                "an approval": {
                    "smolmachines": "smolmachines regressed: own tools alone: expected True, found False"
                },
            },
        ),
    ),
    "keg": (
        fault(
            "parent-forgotten",
            {"a parent": {_BOTH: "every side regressed: env 'A': expected 'parent', found absent"}},
        ),
        fault(
            "empty-is-missing",
            {
                "an empty variable": {
                    _BOTH: "every side regressed: outcome: expected 'done', found 'refused'"
                }
            },
        ),
        fault(
            "damaged-is-removed",
            {
                "a damaged record": {
                    _BOTH: "every side regressed: state untouched: expected True, found False"
                }
            },
        ),
        fault(
            "resumed-elsewhere",
            {
                "a resume elsewhere": {
                    "docker": "docker regressed: tools as before: expected True, found False"
                }
            },
        ),
        fault(
            "output-is-trimmed",
            {"a script": {_BOTH: r"every side regressed: stdout: expected 'out\n', found 'out'"}},
        ),
        fault(
            "ends-before-it-refuses",
            {
                "an approval": {
                    "smolmachines": "smolmachines regressed: bottle lives: expected True, found False"
                },
                "an approval elsewhere": {
                    "smolmachines": "smolmachines regressed: bottle lives: expected True, found False"
                },
            },
        ),
    ),
}


@pytest.fixture
def plant(request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], None]]:
    """Switches a fault of a product on until the test ends."""
    if request.config.getoption("--subject"):
        not_run("options", "the products are those of the suite, and --subject names another")
    before = dict(os.environ)

    def switch_on(product: str, name: str) -> None:
        os.environ[f"{product.upper()}_FAULT"] = name

    yield switch_on
    for product in FAULTS:
        os.environ.pop(f"{product.upper()}_FAULT", None)
    os.environ.update(before)


def judged(
    backends: Sequence[Backend], homes: Path, parts: Sequence[Part] = PARTS
) -> dict[tuple[str, str], str]:
    """What the suite says of a product: part and backend → the first line of each failure."""
    sides = Sides(backends=backends, make_world=simulated, homes=homes)
    found: dict[tuple[str, str], str] = {}
    for each in parts:
        for backend in backends:
            try:
                each.test(sides, backend, **each.values)
            except NotRun as why:
                found[each.name, backend.name] = f"not run: {why}"
            except AssertionError as error:
                found[each.name, backend.name] = str(error).splitlines()[0]
    return found


def around(planted: Fault) -> list[Part]:
    """The parts that a fault must turn red, and after each of them as many that it must not."""
    red = [at for at, each in enumerate(PARTS) if each.name in {name for name, _ in planted.lines}]
    return [PARTS[(at + step) % len(PARTS)] for at in red for step in range(_NEIGHBOURS + 1)]


def product(name: str) -> Sequence[Backend]:
    """The backends of a foreign launcher."""
    return load_program(FOLDER / name / "subject.toml")


@pytest.mark.parametrize("name", [pytest.param("jug", marks=pytest.mark.requires("node")), "keg"])
def test_what_is_right_passes(plant: Callable[[str, str], None], tmp_path: Path, name: str) -> None:
    """Nothing is said of a launcher that keeps the contract, whatever it is made of."""
    found = judged(product(name), tmp_path)

    assert {} == found, f"{name} keeps the contract: expected no failure, found {found}"


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        pytest.param(
            name,
            each,
            id=f"{name}-{each.name}",
            marks=[pytest.mark.requires("node")] if name == "jug" else [],
        )
        for name, faults in FAULTS.items()
        for each in faults
    ],
)
def test_what_is_wrong_is_named(
    plant: Callable[[str, str], None], tmp_path: Path, name: str, planted: Fault
) -> None:
    """The first line of each failure says what the fault did, and nothing else fails."""
    plant(name, planted.name)

    found = judged(product(name), tmp_path, around(planted))

    wrong = {
        key: (planted.lines.get(key), found.get(key))
        for key in planted.lines.keys() | found.keys()
        if planted.lines.get(key, "\0") not in found.get(key, "")
    }
    assert {} == wrong, (
        f"{name} with {planted.name}: expected what the fault does to be said and no more, found "
        f"(expected, found) {wrong}"
    )
