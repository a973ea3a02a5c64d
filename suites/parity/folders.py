"""Folders of the host that are copied: how they are made, and what leads out of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["BENT", "a_folder", "made_of"]

#: How a guest bends a path: what it links, what is copied, and to where.
BENT: Final = {
    "the-file": ({"/home/node/x": "{outside}/kept.txt"}, "kept.txt", "/home/node/x"),
    "a-file-to-be": ({"/tmp/x": "{outside}/new.txt"}, "kept.txt", "/tmp/x"),
    "by-a-second-link": ({"/tmp/x": "y", "/tmp/y": "{outside}/kept.txt"}, "kept.txt", "/tmp/x"),
    "up-and-down": ({"/tmp/x": "{up}{outside}/kept.txt"}, "kept.txt", "/tmp/x"),
    "the-folder-above": ({"/home/node/d": "{outside}"}, "kept.txt", "/home/node/d/kept.txt"),
    "higher-up": ({"/home/node/d": "{outside}"}, "kept.txt", "/home/node/d/deep/er/new.txt"),
    "a-folder-to-copy-to": ({"/tmp/d": "{outside}"}, "kept.txt", "/tmp/d/"),
    "the-folder": ({"/home/node/d": "{outside}"}, "", "/home/node/d"),
    "a-folder-in-it": ({"/tmp/there/deep": "{outside}"}, "", "/tmp/there"),
    "a-file-in-it": ({"/tmp/there/kept.txt": "{outside}/kept.txt"}, "", "/tmp/there"),
    "a-circle": ({"/tmp/x": "y", "/tmp/y": "x"}, "kept.txt", "/tmp/x"),
    "by-dots-from-the-guests-home": ({}, "kept.txt", "/home/node/../../outside/kept.txt"),
    "by-dots-to-a-file-to-be": ({}, "kept.txt", "/tmp/../../../../outside/new.txt"),
    "by-dots-and-all-of-the-path": ({}, "kept.txt", "/tmp/{up}{outside}/kept.txt"),
    "by-dots-a-folder": ({}, "", "/home/node/{up}{outside}"),
    "not-at-all-to-a-folder": ({}, "kept.txt", "/tmp/there"),
}


def made_of(folder: Path) -> dict[str, str]:
    """Every file, link and folder below a folder: its path → its mode and what it holds."""
    return {
        str(path.relative_to(folder)): f"{path.lstat().st_mode:o} "
        + (
            str(path.readlink())
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else ""
        )
        for path in sorted(folder.rglob("*"))
    }


def a_folder(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder of the host with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
