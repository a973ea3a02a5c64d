"""The reference's subject file, with every mistake that a hurry makes: no stack is booted."""

import tomllib
from pathlib import Path
from typing import Final

import pytest

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.system.subject import load_subject
from suites.integration.stack import layout_of

REFERENCE: Final = Path(__file__).with_name("reference-system") / "subject.toml"


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
