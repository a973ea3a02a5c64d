"""docs/explanation/architecture.md tells the truth: files that are there, rooms in the order that is held."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_that_it_names_is_there() -> None:
    """In the drawing and in the lists."""
    named = set(re.findall(r"\b(?:suites|harness_core)/[\w/]+\.(?:py|toml)", PAGE))

    assert len(named) > 30
    assert [] == sorted(path for path in named if not (ROOT / path).is_file())


def test_few_files_lead_from_a_row_to_its_verdict() -> None:
    """At most twelve for each kind of test."""
    lists = re.findall(r"(?m)^- \*\*(.+?)\*\*.*?: (.*)$", PAGE)

    assert 4 == len(lists)
    for kind, files in lists:
        assert len(files.split(", ")) <= 12, kind


def test_the_rooms_stand_in_the_order_that_is_held() -> None:
    """As import-linter reads them, from the ground up."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = content["tool"]["importlinter"]["contracts"]
    layers = [layer.removeprefix("harness_core.") for layer in reversed(contract["layers"])]
    rooms = re.findall(r"(?m)^\| `(\w+)` \|", PAGE)

    assert layers == rooms
    folders = {path.parent.name for path in (ROOT / "harness_core").glob("*/__init__.py")}
    assert set(rooms) == folders - {"tests"}


def test_there_are_few_words_to_learn() -> None:
    """Sorted, each once, at most twenty-five."""
    words = re.findall(r"(?m)^\| ([\w ]+) \| ", PAGE.partition("## Words")[2])[1:]

    assert len(words) <= 25
    assert sorted(words, key=str.lower) == list(dict.fromkeys(words))
