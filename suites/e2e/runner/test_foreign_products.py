"""The suite on products of other makes: what is right passes, each planted fault is named, nothing else is blamed."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from harness_core.base.slowness import patience
from suites.e2e.ecosystem.subject_file import read_subject

pytestmark = [
    pytest.mark.aside("runs the suite itself, on other products"),
    pytest.mark.foreign,
    pytest.mark.slow,
]

SUITE: Final = Path(__file__).parents[1]
PRODUCTS: Final = SUITE / "foreign"

#: What is said of a product that is right, and asked of one that is not.
PART: Final = (
    "test_ecosystem_health.py",
    "test_scenario_runner.py",
    "contracts/test_envelopes.py",
    "contracts/test_idempotency.py::test_the_same_event_twice_is_one_message",
    "contracts/test_idempotency.py::test_the_same_idempotency_key_is_one_message",
    "contracts/test_idempotency.py::test_fifty_callers_at_once_are_one_message",
    "contracts/test_session_truth.py",
)

#: Of the rows about what is refused, some of each kind; all are asked of a product that is right.
SOME: Final = "not is_refused or left or number or list or for"

#: Asked besides of a product that is right.
MORE: Final = ("contracts/test_idempotency.py", "contracts/test_state.py", "test_handles.py")

#: A run takes half a minute on a quiet machine; this bounds hanging.
RUN_S: Final = 600

#: Tests of the right product that pass at least.
PASSED: Final = 60

#: The variable that plants a fault in a product.
SLIPS: Final = {"porter": "PORTER_SLIP", "hive": "HIVE_SLIP"}

NODE: Final = pytest.mark.requires("node")

Verdicts = Mapping[str, tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A fault that is planted in a product.

    Attributes:
        product: in which.
        name: the value of its variable.
        told: pattern of a test's name → what the first line of its failure says.
    """

    product: str
    name: str
    told: Mapping[str, str]


FAULTS: Final = (
    Slip(
        product="porter",
        name="never-here",
        told={
            "test_every_butler_registers_by_itself": "every butler that serves registers",
            "test_the_registry_equals_the_running_set": "the registry lists those that run",
            r"test_scenario\[.*\]": "the classifying prompt never named 'general'",
        },
    ),
    Slip(
        product="porter",
        name="twice",
        told={
            "test_the_same_event_twice_is_one_message": "a repeated event is answered with the first",
            "test_the_same_idempotency_key_is_one_message": "one key names two messages",
            "test_fifty_callers_at_once_are_one_message.*": "deliveries at once became several",
        },
    ),
    Slip(
        product="porter",
        name="only-says-so",
        told={r"test_scenario\[.*\]": "claimed but not done"},
    ),
    Slip(
        product="porter",
        name="failure-is-success",
        told={
            "test_a_failed_session_is_recorded_as_a_failure": "a failed session is recorded as success",
            "test_the_next_session_works_after_a_failed_one": "a refused session has failed",
            "test_a_failed_trigger_is_answered_as_one": "a refused session has failed",
        },
    ),
    Slip(
        product="porter",
        name="half-the-tokens",
        told={
            r"test_scenario\[.*\]": "each session is booked as it was",
            "test_a_session_row_is_the_whole_truth": "input_tokens: row",
        },
    ),
    Slip(
        product="porter",
        name="takes-anything",
        told={
            r"test_a_malformed_message_is_refused\[.*-is-(null|a-number|a-list)\]": "carried out",
        },
    ),
    Slip(
        product="hive",
        name="forgets",
        told={r"test_scenario\[two-domains-.*\]": "claimed but not done"},
    ),
    Slip(
        product="hive",
        name="left-open",
        told={
            "test_a_session_row_is_the_whole_truth": "the session on health was left open",
            "test_the_next_session_works_after_a_failed_one": "the session on health was left open",
            "test_a_failed_trigger_is_answered_as_one": "the session on health was left open",
            "test_a_tool_that_refuses_is_on_record_as_called": "the session on health was left open",
            r"test_words_are_no_commands\[.*\]": "the session on general was left open",
        },
    ),
    Slip(
        product="hive",
        name="nameless",
        told={"test_every_butler_tells_its_own_status": "general calls itself 'hive'"},
    ),
    Slip(
        product="hive",
        name="anybody",
        told={r"test_a_request_that_is_not_for_it_is_refused\[for-.*\]": "carried out"},
    ),
    Slip(
        product="hive",
        name="races",
        told={"test_fifty_callers_at_once_are_one_message.*": "deliveries at once became several"},
    ),
    Slip(
        product="hive",
        name="all-fine",
        told={
            "test_a_failed_session_is_recorded_as_a_failure": "a failed hop is recorded as success"
        },
    ),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Runs a part of the suite on a product.

    Attributes:
        root: of the tree.
        place: a directory to write to.
    """

    root: Path
    place: Path

    def judge(self, subject: Path, *words: str, **variables: str) -> tuple[Verdicts, str]:
        """Test → outcome and the first line of what is said; and all that the run printed.

        Args:
            subject: the subject file.
            words: tests and options for pytest.
            variables: environment of the run.
        """
        junit = self.place / "report.xml"
        run = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words),
                *("-m", "not corpus", f"--subject={subject}", f"--junitxml={junit}"),
                f"--evidence={self.place / 'evidence'}",
            ],
            cwd=self.root,
            # The hive runs on what this environment has: starlette, uvicorn, psycopg.
            env=os.environ | {"HARNESS_REQUIRE": "", "HARNESS_SUBJECT_BIN": ""} | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(RUN_S),
        )
        output = run.stdout + run.stderr

        assert junit.is_file(), output
        found = {}
        for case in ET.parse(junit).iter("testcase"):
            child = next(iter(case), None)
            said = "" if child is None else child.get("message", "")
            outcome = "passed" if child is None else child.tag
            found[str(case.get("name"))] = (outcome, said.partition("\n")[0])
        return found, output


@pytest.fixture
def judge(tmp_path: Path, pytestconfig: pytest.Config) -> Judge:
    """For one run."""
    return Judge(root=pytestconfig.rootpath, place=tmp_path)


@pytest.mark.parametrize("product", [pytest.param("porter", marks=NODE), "hive"])
def test_what_is_right_passes(judge: Judge, product: str) -> None:
    """Nothing is said against a product that does what it claims, however it is made."""
    parts = [str(SUITE / part) for part in (*PART, *MORE)]
    found, output = judge.judge(PRODUCTS / product / "subject.toml", *parts)
    wrong = {name: each for name, each in found.items() if each[0] not in {"passed", "skipped"}}
    passed = [name for name, (outcome, _) in found.items() if outcome == "passed"]

    assert {} == wrong, output[-8000:]
    assert len(passed) >= PASSED, f"only {len(passed)} tests passed: {sorted(passed)}"


@pytest.mark.parametrize(
    "slip",
    [
        pytest.param(
            slip,
            id=f"{slip.product}-{slip.name}",
            marks=NODE if slip.product == "porter" else (),
        )
        for slip in FAULTS
    ],
)
def test_what_is_wrong_is_named(judge: Judge, slip: Slip) -> None:
    """The first line of each failure says what the product did, and no other test fails."""
    subject = PRODUCTS / slip.product / "subject.toml"
    parts = [str(SUITE / part) for part in PART]
    planted = {SLIPS[slip.product]: slip.name}
    found, output = judge.judge(subject, *parts, "-k", SOME, **planted)
    wrong = {name: each for name, each in found.items() if each[0] not in {"passed", "skipped"}}
    silent = [
        pattern for pattern in slip.told if not any(re.fullmatch(pattern, name) for name in wrong)
    ]
    astray = {
        name: (outcome, said)
        for name, (outcome, said) in wrong.items()
        if outcome != "failure"
        or not any(
            re.fullmatch(pattern, name) and words in said for pattern, words in slip.told.items()
        )
    }

    assert [] == silent, f"{slip.name} turned none of them red\n{output[-8000:]}"
    assert {} == astray, f"{slip.name}: blamed besides, or in other words\n{output[-8000:]}"


def test_where_what_is_valid_is_refused_refusals_are_not_run(judge: Judge, tmp_path: Path) -> None:
    """A file that leaves out what the product needs makes it refuse everything: that says nothing of it."""
    folder = PRODUCTS / "hive"
    text = (folder / "subject.toml").read_text(encoding="utf-8")
    text = text.replace(', person = "{sender.identity}"', "").replace(
        'directory = "cells"', f'directory = "{folder / "cells"}"'
    )
    text = text.replace('cwd = "."', f'cwd = "{folder}"')
    subject = tmp_path / "hive.toml"
    subject.write_text(text, encoding="utf-8")
    part = SUITE / "contracts" / "test_envelopes.py"
    found, output = judge.judge(subject, str(part), "-k", "malformed and (left or number)")
    told = [said for _, said in found.values() if "ingest refuses the valid request too" in said]

    assert {"skipped"} == {outcome for outcome, _ in found.values()}, output[-8000:]
    assert told, output[-8000:]
    assert all("form.sender.person" in said for said in told), f"it says what is wanted: {told}"


@pytest.mark.parametrize("product", ["porter", "hive"])
def test_a_subject_file_is_short(product: str) -> None:
    """What is to be said of a product takes less than thirty lines."""
    path = PRODUCTS / product / "subject.toml"

    assert read_subject(path).capabilities
    assert len(path.read_text(encoding="utf-8").splitlines()) < 30
