"""Options and marks that every suite understands."""

from __future__ import annotations

import math

import pytest

from harness_core.assurance import gates
from harness_core.base import limits
from harness_core.base.errors import BadInput


def add_options(group: pytest.OptionGroup) -> None:
    """Declare the options."""
    group.addoption(
        "--subject",
        metavar="FILE",
        help="subject file (TOML) of the system to test; default: the suite's reference system",
    )
    group.addoption(
        "--try-capability",
        action="append",
        default=[],
        metavar="NAME",
        help="test the subject as if its file claimed this capability; repeatable (`harness subject check`)",
    )
    group.addoption(
        "--services",
        choices=("local", "container", "external"),
        default="local",
        help="where servers come from (default: local)",
    )
    group.addoption(
        "--llm",
        choices=("rehearsed", "live", "record", "replay"),
        default="rehearsed",
        help="how the model gateway answers (default: rehearsed, no key, no network)",
    )
    group.addoption(
        "--llm-budget-usd",
        type=float,
        metavar="USD",
        help="hard limit of what the models of a suite may cost in this run (default: budget_usd of "
        f"its suite.toml, else {limits.LLM_BUDGET_USD:.2f})",
    )
    group.addoption(
        "--llm-upstream",
        metavar="URL",
        help="base URL of the provider for --llm live and record (default: the provider's own)",
    )
    group.addoption(
        "--llm-cassette",
        "--cassettes",
        dest="llm_cassette",
        metavar="DIR",
        help="the recorded model calls that --llm record writes and --llm replay reads",
    )
    group.addoption(
        "--profile",
        action="store_true",
        help="profile the processes of the system under test: flame graphs among the evidence",
    )
    group.addoption(
        "--evidence",
        metavar="DIR",
        help="where evidence is written (default: .evidence in the root directory)",
    )
    group.addoption(
        "--otlp",
        metavar="URL",
        help="send spans that the system under test exports on to this collector (OTLP over HTTP)",
    )
    group.addoption(
        "--plain",
        dest="harness_plain",
        action="store_true",
        help="no progress at the foot of a terminal: lines alone, as where there is no terminal",
    )
    group.addoption(
        "--report",
        dest="harness_report",
        action="store_true",
        help="make a page of this run at its end, beside its JUnit file (.evidence/reports/SESSION.html)",
    )


def add_marks(config: pytest.Config) -> None:
    """Declare the marks."""
    config.addinivalue_line(
        "markers",
        "requires(gate, ...): skip with a reason where a gate is closed; fail where "
        "HARNESS_REQUIRE names it",
    )
    config.addinivalue_line(
        "markers",
        "capability(name, ...): skip where the subject file does not list the capability "
        "(the suite's conftest knows the subject)",
    )
    config.addinivalue_line(
        "markers",
        "starts_product: its body starts the product and asserts that it came up; a mutant with "
        "which fixtures cannot start it is judged by such tests (docs/how-to/mutation.md)",
    )
    config.addinivalue_line(
        "markers", "covers(id, ...): in a suite with a ledger, the requirements that a test proves"
    )
    config.addinivalue_line(
        "markers", "aside(reason): in a suite with a ledger, a test that covers no requirement"
    )


def check_options(config: pytest.Config) -> None:
    """Check what the command line and the environment demand.

    Raises:
        pytest.UsageError: a value that is out of range, options that do not go together, or a gate
            in ``HARNESS_REQUIRE`` that there is not.
    """
    budget_usd = config.getoption("--llm-budget-usd")
    if budget_usd is not None and not 0 <= budget_usd < math.inf:
        message = f"--llm-budget-usd: found {budget_usd:g}, expected USD of zero or more"
        raise pytest.UsageError(message)
    cassette, mode = config.getoption("--llm-cassette"), config.getoption("--llm")
    if bool(cassette) != (mode in {"record", "replay"}):
        message = (
            f"--llm-cassette: found {cassette!r} with --llm {mode}, expected a directory with"
            " --llm record or replay, and only with those"
        )
        raise pytest.UsageError(message)
    try:
        gates.required()
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error
