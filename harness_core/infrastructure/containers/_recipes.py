"""The images that the harness builds, and the tag that their inputs give them.

A tag is a hash over everything that goes in: the Dockerfile, the files beside it, the certificates
of this machine, and the tag of the image below. A changed input makes another tag; an unchanged
one is found and not built again.
"""

from __future__ import annotations

import hashlib
import io
import platform
import re
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
    "valkey": _Recipe(parent="python"),
    "nats": _Recipe(parent="python"),
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
    above = f"{_LAYOUT} {SUITE} {platform.machine()}"
    if recipe.parent:
        above += f"\0{image_tag(recipe.parent)}"
    return f"{REPOSITORY}/{name}:{digest(above, _files(name))}"


#: The imported Debian root, on a machine without a registry.
DEBIAN_ROOT: Final = f"{REPOSITORY}/debian:{SUITE}-{_LAYOUT}"


def build_context(name: str) -> dict[str, bytes]:
    """The Dockerfile and the files beside it, by their names.

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
    return files


def subject_context(dockerfile: Path, context: Sequence[Path]) -> dict[str, bytes]:
    """A subject's Dockerfile, and its folders and files by their names; without caches."""
    files = {"Dockerfile": dockerfile.read_bytes()}
    for place in context:
        inside = [place] if place.is_file() else place.rglob("*")
        for path in inside:
            if path.is_file() and "__pycache__" not in path.parts:
                files[str(path.relative_to(place.parent))] = path.read_bytes()
    return files


def digest(above: str, files: Mapping[str, bytes]) -> str:
    """Of what goes into an image: what it stands on, names and contents of its files."""
    parts = [above.encode()]
    for file, content in sorted(files.items()):
        parts += [file.encode(), hashlib.sha256(content).digest()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def pack(files: Mapping[str, bytes], *, label: str) -> bytes:
    """The tar that an engine builds from; every layer is labelled, from the first one on.

    The same content makes the same bytes: times and owners are left out.
    """
    labelled = re.sub(
        rb"^FROM .*$",
        rb"\g<0>\nLABEL " + label.encode(),
        files["Dockerfile"],
        flags=re.MULTILINE | re.IGNORECASE,
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file, content in sorted({**files, "Dockerfile": labelled}.items()):
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
