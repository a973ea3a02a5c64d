"""Templates, filled in and written: a folder is there whole, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["fill", "write_folder"]

_TEMPLATES: Final = Path(__file__).with_name("template")


def write_folder(
    folder: Path,
    templates: Sequence[str],
    values: Mapping[str, str],
    *,
    more: Callable[[Path], None] = lambda _folder: None,
) -> None:
    """Write a folder that is not there.

    Args:
        folder: where; its parent is there.
        templates: names; of two files of one name the later template's is written.
        values: what ``@KEY@`` stands for.
        more: writes more into the folder before it is moved to its place.
    """
    # Written beside its place and moved there in one step: an interrupted scaffold is nothing.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as draft:
        whole = Path(draft) / folder.name
        whole.mkdir()
        for template in templates:
            fill(_TEMPLATES / template, whole, values)
        more(whole)
        shutil.move(whole, folder)


def fill(template: Path, folder: Path, values: Mapping[str, str]) -> None:
    """Write the files of one template into a folder."""
    for source in sorted(path for path in template.rglob("*.tmpl") if path.is_file()):
        name = source.relative_to(template).as_posix().removesuffix(".tmpl")
        target = folder / _filled(name, values)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _filled(source.read_text(encoding="utf-8"), values)
        target.write_text(text, encoding="utf-8")


def _filled(text: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text
