"""The examples: small enough that somebody reads them whole."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted(
    path.parent for path in Path(__file__).parents[3].glob("examples/*/pyproject.toml")
)
CODE = {".py", ".js", ".sql"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_read_in_minutes(example: Path) -> None:
    """Product and tests together have fewer than 150 lines of code, empty ones left out."""
    # What runs in place leaves environments behind, in hidden folders.
    places = (path for path in example.rglob("*") if path.suffix in CODE)
    files = [path for path in places if not _hidden(path.relative_to(example))]
    lines = [line for path in files for line in path.read_text().splitlines() if line.strip()]

    assert 0 < len(lines) < 150, f"{example.name}: {len(lines)} lines in {len(files)} files"


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
