"""The images that the harness builds, and the tag that their inputs give them.

A tag is a hash over everything that goes in: the Dockerfile, the files beside it, the certificates
of this machine, and the tag of the image below. A changed input makes another tag; an unchanged
one is found and not built again.
"""

from __future__ import annotations

import hashlib
import io
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput, Unavailable

REPOSITORY: Final = "staging-harness"

#: Raise it when images change for a reason the hash does not see.
_LAYOUT: Final = 1

SUITE: Final = "bookworm"

#: What the lowest Dockerfile names where a registry is at hand.
PUBLIC_BASE: Final = f"debian:{SUITE}-slim"

_IMAGES: Final = Path(__file__).with_name("images")

#: Where machines keep the bundle of authorities they trust: Debian, Fedora, Alpine.
_BUNDLES: Final = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/cert.pem"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """One image.

    Args:
        parent: name of the image below; empty for the one on top of a plain Debian.
        certificates: its context holds this machine's bundle.
    """

    parent: str
    certificates: bool = False


#: In the order in which they are built. A new image is a row and a folder below ``images/``.
_RECIPES: Final[Mapping[str, _Recipe]] = {
    "base": _Recipe(parent="", certificates=True),
    "postgres": _Recipe(parent="base"),
    "postgres-baked": _Recipe(parent="postgres"),
    "python": _Recipe(parent="base"),
    "s3": _Recipe(parent="python"),
    "temporal": _Recipe(parent="python"),
}

IMAGE_NAMES: Final = tuple(_RECIPES)


def image_parent(name: str) -> str:
    """Name of the image below; empty for the lowest.

    Raises:
        BadInput: no such image.
    """
    return _recipe(name).parent


def image_tag(name: str) -> str:
    """The reference that the inputs of today give an image; reads files, asks no engine.

    Raises:
        BadInput: no such image.
    """
    recipe = _recipe(name)
    parts = [f"{_LAYOUT} {SUITE} {platform.machine()}".encode()]
    if recipe.parent:
        parts.append(image_tag(recipe.parent).encode())
    for file, content in sorted(_files(name).items()):
        parts += [file.encode(), hashlib.sha256(content).digest()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
    return f"{REPOSITORY}/{name}:{digest}"


#: The imported Debian root, on a machine without a registry.
DEBIAN_ROOT: Final = f"{REPOSITORY}/debian:{SUITE}-{_LAYOUT}"


def build_context(name: str) -> bytes:
    """The Dockerfile and the files beside it, as the tar that an engine builds from.

    Raises:
        Unavailable: this machine has no certificates to copy in.
    """
    files = _files(name)
    if files.get("ca-certificates.crt") == b"":
        raise Unavailable(
            f"build image {name}",
            observed=f"no bundle of certificates at {', '.join(map(str, _BUNDLES))}",
            next_step="Install the package ca-certificates",
        )
    return _archive(files)


def pack(dockerfile: Path, context: Sequence[Path]) -> bytes:
    """A build context of a subject's own: its Dockerfile, and folders and files by their names.

    The same content makes the same bytes: times, owners and caches are left out.
    """
    files = {"Dockerfile": dockerfile.read_bytes()}
    for place in context:
        inside = [place] if place.is_file() else sorted(place.rglob("*"))
        for path in inside:
            if path.is_file() and "__pycache__" not in path.parts:
                files[str(path.relative_to(place.parent))] = path.read_bytes()
    return _archive(files)


def labelled(archive: bytes, label: str) -> bytes:
    """A build context whose Dockerfile labels every layer that it makes, from the first one on."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {each.name: _content(tar, each) for each in tar.getmembers()}
    lines = []
    for line in files["Dockerfile"].decode().splitlines():
        lines.append(line)
        if line.upper().startswith("FROM "):
            lines.append(f"LABEL {label}")
    return _archive({**files, "Dockerfile": "\n".join([*lines, ""]).encode()})


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None  # ``_archive`` packs files alone
    return file.read()


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file, content in sorted(files.items()):
            entry = tarfile.TarInfo(file)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _files(name: str) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in (_IMAGES / name).iterdir() if path.is_file()}
    if _recipe(name).certificates:
        files["ca-certificates.crt"] = _bundle()
    return files


def _bundle() -> bytes:
    """This machine's certificates; empty on a machine without."""
    for path in _BUNDLES:
        try:
            return path.read_bytes()
        except OSError:
            continue
    return b""


def _recipe(name: str) -> _Recipe:
    recipe = _RECIPES.get(name)
    if recipe is None:
        raise BadInput("image", found=name, expected=f"one of {', '.join(_RECIPES)}")
    return recipe
