"""What is read before a stack is booted: the reference's subject file with every mistake, and who needs a model."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.system.subject import load_subject
from harness_core.system.suites import load_suite
from suites.integration.stack import layout_of

SUITE: Final = Path(__file__).parent
REFERENCE: Final = SUITE / "reference-system" / "subject.toml"

#: What a product can have only if its agents ask a model, which is the gateway here.
_THINKS: Final = {"batches", "episodes", "flows", "hand-over"}

#: A test of something else that asks for this before it holds a model.
_ASKS: Final = '"episodes" in subject.capabilities', '"episodes" not in subject.capabilities'


@pytest.mark.integration_p0
@pytest.mark.aside("reads a file of the suite")
def test_subject_file(tmp_path) -> None:
    """Every table, key and kind of value that the adapter reads."""
    path = tmp_path / "subject.toml"

    tried = check_reader(
        lambda: layout_of(load_subject(path)),
        path,
        content=tomllib.loads(REFERENCE.read_text()),
        write=to_toml,
    )
    assert tried > 20, f"expected more than 20 mistakes to be tried, found {tried}"


@pytest.mark.integration_p0
@pytest.mark.aside("reads files of the suite")
def test_no_model_is_held_of_a_product_that_asks_none() -> None:
    """Where a test's model is the gateway, a capability that it needs says that agents think."""
    capabilities = load_suite(SUITE).capabilities
    held = [
        test
        for test in _with_a_model()
        if not _THINKS & {each.name for each in capabilities if each.is_needed_by(test)}
    ]
    assert not held, f"expected each to need one of {sorted(_THINKS)} in suite.toml, found {held}"


def _with_a_model() -> Iterator[str]:
    """Tests that say that the gateway stands in for a model provider, but for those that look first."""
    for path in (*SUITE.glob("test_*.py"), *SUITE.glob("*/test_*.py")):
        if path.parent.name == "live":  # asks a provider
            continue
        source = path.read_text()
        for each in ast.parse(source).body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                said = " ".join((ast.get_docstring(each) or "").split())
                text = ast.get_source_segment(source, each) or ""
                asks = any(words in text for words in _ASKS)
                if "model provider" in said and each.name.startswith("test_") and not asks:
                    yield f"{path.relative_to(SUITE)}::{each.name}"
