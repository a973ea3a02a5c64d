"""Copies into a folder that another process changes at the same time, and never out of it.

A guest can put a link wherever it can write, also between two steps of a copy. So a folder is opened
by its name in the folder above it, no link there is followed, and a file is written beside its place
and then put into it, which replaces a link instead of writing through it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bot_bottle import faults

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

#: What is kept of a file's mode: who may read, write and run it.
_PERMISSIONS = 0o777


def copy_into(source: Path, root: Path, parts: Sequence[str]) -> None:
    """Copy a file, or a folder with all that is in it, to a place below a root.

    Folders above the place are made, files that are there are replaced, a folder is added to.
    Permissions are those of the source. Links in a folder are copied as links.

    Raises:
        OSError: it cannot be done; a link or a file where a folder must be is ENOTDIR or ELOOP.
    """
    with _opened(root, None) as top:
        if not parts and source.is_dir():
            _fill(top, source)
        elif not parts:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        else:
            _put(top, parts, source)


def _put(above: int, parts: Sequence[str], source: Path) -> None:
    name, *rest = parts
    if not rest and not source.is_dir():
        _write(above, name, source)
        return
    with suppress(FileExistsError):
        os.mkdir(name, 0o755 if rest else 0o700, dir_fd=above)
    with _opened(name, above) as folder:
        if rest:
            _put(folder, rest, source)
            return
        # One that is there may be closed to its owner.
        os.chmod(folder, 0o700)
        _fill(folder, source)
        os.chmod(folder, source.stat().st_mode & _PERMISSIONS)


def _fill(folder: int, source: Path) -> None:
    for each in sorted(source.iterdir()):
        if each.is_symlink():
            with _draft_name(folder, each.name) as draft:
                os.symlink(os.readlink(each), draft, dir_fd=folder)
                os.rename(draft, each.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            _put(folder, [each.name], each)


def _write(folder: int, name: str, source: Path) -> None:
    if not source.is_file():
        raise OSError(errno.EINVAL, "it is neither a file nor a folder")
    with source.open("rb") as content, _draft_name(folder, name) as draft:
        descriptor = os.open(draft, _DRAFT, 0o600, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(content, file)
            os.chmod(descriptor, os.fstat(content.fileno()).st_mode & _PERMISSIONS)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _draft_name(folder: int, name: str) -> Iterator[str]:
    """A name for what is not complete yet, however long its own is; whatever has it at the end of the block is removed."""
    draft = f".{secrets.token_hex(8)}.draft"
    if faults.on("bubblewrap-drafts-by-name"):
        draft = f".{name}.draft"
    try:
        yield draft
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


@contextmanager
def _opened(name: str | Path, above: int | None) -> Iterator[int]:
    descriptor = os.open(name, _FOLDER, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
