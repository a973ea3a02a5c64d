"""Adapter files: the launcher under test is a file on the command line, and mistakes are named."""

import pytest

from harness_core.base.errors import BadInput
from suites.parity.compare import load_backends

pytestmark = pytest.mark.aside("how the suite compares")

GOOD = """
from dataclasses import dataclass
import beside

@dataclass
class Backend:
    name: str

BACKENDS = [Backend(beside.NAME), Backend("b")]
"""


def test_an_adapter_names_its_backends(tmp_path):
    """Modules in its folder can be imported, and the rows come back as they are."""
    (tmp_path / "beside.py").write_text('NAME = "a"\n')
    file = tmp_path / "mine.py"
    file.write_text(GOOD)

    assert ["a", "b"] == [backend.name for backend in load_backends(file)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("BACKENDS = [", "SyntaxError"),
        ("BACKENDS = []", "[]"),
        ("", "None"),
        ("BACKENDS = ['a']", "[None]"),
        ("class B: name = 'a'\nBACKENDS = [B, B]", "['a', 'a']"),
    ],
)
def test_a_bad_adapter_is_one_error(tmp_path, text, found):
    """What is wrong is reported with the file, and no traceback of its insides."""
    file = tmp_path / "mine.py"
    file.write_text(text)

    with pytest.raises(BadInput) as caught:
        load_backends(file)

    assert str(file) == caught.value.where
    assert found in str(caught.value.found)


def test_a_file_that_is_no_python_file_is_refused(tmp_path):
    """Neither a missing file nor a subject.toml is taken for an adapter."""
    for name in ("none.py", "subject.toml"):
        with pytest.raises(BadInput, match="defines BACKENDS"):
            load_backends(tmp_path / name)
