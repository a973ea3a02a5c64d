"""The suite against products written otherwise than the reference: right ones pass, faults are named.

Two of them are in ``foreign/``, each with faults that a variable switches on (``foreign/faults.toml``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness_core.base.slowness import patience

pytestmark = [
    pytest.mark.aside("runs the suite itself, against other products"),
    pytest.mark.runner,
    pytest.mark.requires("confinement"),
]

FOREIGN = Path(__file__).with_name("foreign")
FAULTS = tomllib.loads((FOREIGN / "faults.toml").read_text("utf-8"))["fault"]
NODE = pytest.mark.requires("node")
PRODUCTS = [pytest.param("parley", marks=NODE), "tattle"]

#: What a right product is tried by: all contracts that such a product can be asked about, and of the
#: long lists of commands a part.
RIGHT = (
    "contract_1 or contract_2 or contract_3 or contract_4 or contract_6 or contract_7 "
    "or rm-joined-flags or find-delete or safe_command or judged_each"
)

#: What a product with a fault is tried by: something of each contract, and `also` of the fault.
WRONG = (
    "test_handshake or sigint or user_input_is or answers_go or heartbeat_is_not or prefix-with-plus "
    "or prefix-is-http or macro-evaluates-arithmetic or size-huge or latin or stops_the_pipeline and interrupt "
    "or half_a_frame or find-delete or registry_is"
)

#: The whole takes a minute on a quiet machine, a part of it a quarter; this bounds hanging.
SUITE_S = 600

#: A contract of which the product claims nothing → a test that must say so.
LACKS = {
    "parley": {
        "metaless": "test_without_meta",
        "shutdown-command": "test_stop_by_command",
        "shell-reply": "test_without_a_working_root_of_its_own",
    },
    "tattle": {
        "cli-source": "test_cli_text_is_answered",
        "echo": "test_long_replies_come_whole_in_small_pieces",
        "error-frames": "test_how_far_it_got_is_where_it_broke_off[no-utf-8-1]",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one test: ``passed``, ``skipped``, ``failure`` or ``error``, and why."""

    kind: str
    why: str


def run_suite(
    directory: Path, root: Path, product: str, *, select: str, fault: str = ""
) -> tuple[dict[str, Outcome], str]:
    """Outcomes by name, and what the run printed."""
    junit = directory / "report.xml"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent)),
            *("-p", "no:cacheprovider", f"--junitxml={junit}"),
            f"--subject={FOREIGN / product / 'subject.toml'}",
            *("-k", select, "-m", "not runner and not soak and not explore"),
            f"--evidence={directory / 'evidence'}",
        ],
        cwd=root,
        env=os.environ | {"HARNESS_REQUIRE": "", f"{product.upper()}_FAULT": fault},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(SUITE_S),
    )

    assert junit.is_file(), run.stdout + run.stderr
    outcomes = {}
    for case in ET.parse(junit).iter("testcase"):
        child = next(iter(case), None)
        kind = "passed" if child is None else child.tag
        why = "" if child is None else child.get("message", "")
        outcomes[case.get("name", "")] = Outcome(kind=kind, why=why)
    return outcomes, run.stdout


@pytest.fixture(scope="module", params=PRODUCTS)
def right(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
):
    """A product without a fault, and what became of each test."""
    directory = tmp_path_factory.mktemp(request.param)
    outcomes, printed = run_suite(directory, pytestconfig.rootpath, request.param, select=RIGHT)
    return request.param, outcomes, printed


def test_what_is_right_passes(right) -> None:
    """What a product does is found right, and what it does not claim is not held against it."""
    _, outcomes, printed = right
    wrong = {
        name: each.why for name, each in outcomes.items() if each.kind not in {"passed", "skipped"}
    }

    assert {} == wrong, printed[-6000:]


def test_most_is_tested(right) -> None:
    """It is tested all the same: handshake, pipeline, malformed frames, bounds, refusals, lists."""
    _, outcomes, _ = right
    passed = {name for name, each in outcomes.items() if each.kind == "passed"}

    assert {
        "test_handshake",
        "test_stop_by_signal[sigterm]",
        "test_heartbeat_is_not_answered",
        "test_hostile[prefix-of-letters]",
        "test_waits_are_bounded",
        "test_sizes_are_bounded",
        "test_connections_have_a_bound",
        "test_dangerous[find-delete]",
        "test_a_safe_command_has_its_effect",
        "test_registry_is_populated",
        "test_registry_is_filled",
    } <= passed, sorted(passed)


def test_what_it_lacks_is_named(right) -> None:
    """A skip says which capability is missing, and in which file."""
    product, outcomes, _ = right
    for capability, test in LACKS[product].items():
        found = outcomes[test]

        assert "skipped" == found.kind, f"{test} {found}"
        assert re.search(rf"no capability '{capability}' in subject\.toml", found.why), found.why


def test_a_subject_file_is_short() -> None:
    """A product is described in under thirty lines."""
    for file in FOREIGN.glob("*/subject.toml"):
        lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]

        assert len(lines) < 30, f"{file} has {len(lines)}"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault["id"], marks=[NODE] if fault["product"] == "parley" else [])
        for fault in FAULTS
    ],
)
def test_a_fault_is_convicted(tmp_path: Path, pytestconfig: pytest.Config, fault) -> None:
    """A product with one fault is convicted of it, by the first line, and blamed for nothing else."""
    select = f"{WRONG} or {fault['also']}" if "also" in fault else WRONG
    outcomes, printed = run_suite(
        tmp_path, pytestconfig.rootpath, fault["product"], select=select, fault=fault["id"]
    )
    failed = {name: each for name, each in outcomes.items() if each.kind == "failure"}
    errors = {name: each.why for name, each in outcomes.items() if each.kind == "error"}
    first = {name: each.why.splitlines()[0] for name, each in failed.items()}
    blamed = {
        name: line
        for name, line in first.items()
        if not any(re.fullmatch(test, name) for test in fault["convicts"])
        or not re.search(fault["says"], line)
    }

    assert not errors, f"no error of ours is due to {fault['why']}: {errors}\n{printed[-3000:]}"
    assert failed, f"{fault['why']}, and nobody noticed:\n{printed[-3000:]}"
    assert not blamed, f"{fault['why']} is blamed elsewhere: {blamed}"
    for test in fault["convicts"]:
        assert any(re.fullmatch(test, name) for name in failed), f"{test} did not notice: {first}"
