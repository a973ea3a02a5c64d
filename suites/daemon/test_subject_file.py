"""The reference's subject file, with every mistake that a hurry makes: no daemon is started."""

import tomllib
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.base.errors import BadInput
from harness_core.system.staging import subject_of
from harness_core.system.suites import find_root, load_suite

FOLDER: Final = Path(__file__).parent
REFERENCE: Final = FOLDER / "reference-system" / "subject.toml"

read_subject = partial(subject_of, load_suite(FOLDER), root=find_root(FOLDER))

pytestmark = pytest.mark.aside("reads a file of the suite")


def test_subject_file(tmp_path):
    """Every table, key and kind of value that a test reads; variables and skills are the product's."""
    path = tmp_path / "subject.toml"

    assert 80 < check_reader(
        lambda: read_subject(path),
        path,
        content=tomllib.loads(REFERENCE.read_text()),
        write=to_toml,
        named_by_the_author=(
            "accepted.*",
            "accepted.*.*",
            "env.*",
            "knobs.*.*",
            "providers.env.*",
            "providers.each.*",
            "refused.*",
            "refused.*.*",
            "skills.answers.*",
            "skills.files.*.toml",
            "skills.reasons.*",
            "skills.shown.*",
        ),
    )


def test_a_capability_needs_what_its_tests_read(tmp_path):
    """Claimed without the text it is asked with, it would be an error of ours in every test of it."""
    path = tmp_path / "subject.toml"
    path.write_text('[subject]\nname = "x"\nargv = ["x"]\ncapabilities = ["echo"]\n')

    with pytest.raises(BadInput, match="'echo' is claimed") as refused:
        read_subject(path)

    assert (str(path), "texts.echo") == (refused.value.where, refused.value.key)
