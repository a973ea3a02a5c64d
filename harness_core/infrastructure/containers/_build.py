"""Builds, lists and removes the images of the harness; ``harness images`` is its command line."""

from __future__ import annotations

import fcntl
import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.errors import BadInput, HarnessError
from harness_core.infrastructure.containers._bootstrap import import_debian
from harness_core.infrastructure.containers._client import engine_client, engine_errors, library
from harness_core.infrastructure.containers._labels import host_id
from harness_core.infrastructure.containers._recipes import (
    DEBIAN_ROOT,
    IMAGE_NAMES,
    PUBLIC_BASE,
    REPOSITORY,
    build_context,
    digest,
    image_parent,
    image_tag,
    pack,
    subject_context,
)
from harness_core.infrastructure.engine import Engine
from harness_core.process import start_time, state_root

#: Where the lowest image comes from: tried in this order with ``auto``.
BASES: Final = ("auto", "public", "debootstrap")

#: A build is silent while a package of some hundred megabytes unpacks.
_BUILD_SILENCE_S: Final = 600.0

#: Engines know these build arguments by themselves and keep them out of the image.
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")

#: Label of every layer of a build that is not finished: machine, pid and start of its builder.
_BUILDING: Final = f"{REPOSITORY}.building"

#: Images of subjects: only who names the subject knows whether they are current.
_SUBJECT: Final = "subject-"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRow:
    """One image as it is listed.

    Attributes:
        reference: ``repository:tag``.
        state: ``current``, ``missing``, ``outdated`` (made from inputs that have changed), or
            ``subject`` (the image of a system under test).
        size_bytes: 0 for a missing one.
    """

    reference: str
    state: str
    size_bytes: int = 0


def build_images(
    engine: Engine, *, names: Sequence[str] = (), bases: str = "auto", say: Say
) -> tuple[str, ...]:
    """Build what is missing of the named images and of those below them; blocks.

    Args:
        engine: where.
        names: images; all when empty.
        bases: one of :data:`BASES`.
        say: gets a line for each step.

    Returns:
        References of all that were asked for, built now or before.

    Raises:
        BadInput: no such image.
        Unavailable: no base image can be pulled or made.
        HarnessError: a build failed; shows its last lines.
    """
    if bases not in BASES:
        raise BadInput("build_images", key="bases", found=bases, expected=f"one of {BASES}")
    chosen = names or IMAGE_NAMES
    with one_builder(), engine_client(engine, timeout_s=_BUILD_SILENCE_S) as client:
        build_missing(client, names=chosen, bases=bases, say=say)
    return tuple(image_tag(name) for name in chosen)


def build_missing(client: Any, *, names: Sequence[str], bases: str, say: Say) -> None:
    """:func:`build_images` for who has a client, and is the one builder already."""
    for name in _with_parents(names):
        tag = image_tag(name)
        if at_hand(client, tag):
            say(f"{tag} is current")
            continue
        parent = image_parent(name)
        base = image_tag(parent) if parent else _lowest(client, bases=bases, say=say)
        say(f"building {tag} from {base}")
        _build(client, build_context(name), tag=tag, base=base)


def image_rows(engine: Engine) -> tuple[ImageRow, ...]:
    """What there is of the harness's images, and what is missing; blocks."""
    current = {image_tag(name) for name in IMAGE_NAMES}
    with engine_client(engine) as client:
        found = dict(_ours(client))
    rows = [
        ImageRow(reference=reference, state=_state(reference, current), size_bytes=size_bytes)
        for reference, size_bytes in found.items()
    ]
    rows += [ImageRow(reference=tag, state="missing") for tag in current - found.keys()]
    return tuple(sorted(rows, key=lambda row: row.reference))


def remove_images(engine: Engine, *, outdated: bool) -> tuple[str, ...]:
    """Remove the harness's images, and no other; blocks.

    Args:
        engine: where.
        outdated: only those made from inputs that have changed.

    Returns:
        References of what was removed.

    Raises:
        HarnessError: a container still uses one.
    """
    rows = [row for row in image_rows(engine) if row.state != "missing"]
    # Children first: an image that another one stands on cannot go.
    order = [*reversed(IMAGE_NAMES), "debian"]
    chosen = sorted(
        (row.reference for row in rows if not outdated or row.state == "outdated"),
        key=lambda reference: _position(order, reference),
    )
    with engine_client(engine) as client:
        for reference in chosen:
            with engine_errors(f"remove image {reference}"):
                client.images.remove(reference)
    return tuple(chosen)


def _state(reference: str, current: set[str]) -> str:
    if reference.startswith(f"{REPOSITORY}/{_SUBJECT}"):
        return "subject"
    return "current" if reference in {*current, DEBIAN_ROOT} else "outdated"


def _position(order: Sequence[str], reference: str) -> int:
    name = reference.removeprefix(f"{REPOSITORY}/").partition(":")[0]
    return order.index(name) if name in order else -1


def _with_parents(names: Sequence[str]) -> list[str]:
    needed = set()
    for name in names:
        above = name
        while above:
            needed.add(above)
            above = image_parent(above)
    return [name for name in IMAGE_NAMES if name in needed]


def at_hand(client: Any, reference: str) -> bool:
    """Whether the engine has that image."""
    with engine_errors(f"look for image {reference}"):
        try:
            client.images.get(reference)
        except library().errors.ImageNotFound:
            return False
    return True


def pull(client: Any, reference: str, *, say: Say) -> HarnessError | None:
    """Pull an image; returns why it cannot be, since it may be built instead."""
    say(f"pulling {reference}")
    try:
        with engine_errors(f"pull {reference}"):
            client.images.pull(reference)
    except HarnessError as error:
        say(f"it cannot be pulled: {error.observed}")
        return error
    return None


def _ours(client: Any) -> Iterator[tuple[str, int]]:
    with engine_errors("list images"):
        images = client.images.list()
    for image in images:
        for tag in image.tags:
            if tag.startswith(f"{REPOSITORY}/"):
                yield tag, int(image.attrs.get("Size", 0))


def _lowest(client: Any, *, bases: str, say: Say) -> str:
    """A plain Debian: the public image where it is or can be had, else one made here."""
    if bases != "public" and at_hand(client, DEBIAN_ROOT):
        return DEBIAN_ROOT
    if bases != "debootstrap":
        if at_hand(client, PUBLIC_BASE):
            return PUBLIC_BASE
        if (refusal := pull(client, PUBLIC_BASE, say=say)) is None:
            return PUBLIC_BASE
        if bases == "public":
            raise refusal
    return import_debian(client, say=say)


def build_subject_image(
    engine: Engine,
    *,
    name: str,
    base: str,
    dockerfile: Path,
    context: Sequence[Path],
    say: Say = lambda _text: None,
) -> str:
    """Build the image of a subject on one of the harness's own, unless its inputs are unchanged.

    Args:
        engine: where.
        name: of the image, below ``staging-harness/``.
        base: the harness's image that ``ARG BASE`` becomes.
        dockerfile: its Dockerfile.
        context: folders and files that go into the build, under their own names.
        say: gets a line for what takes long.

    Returns:
        The reference.

    Raises:
        HarnessError: the build failed; shows its last lines.
    """
    (below,) = build_images(engine, names=(base,), say=say)
    files = subject_context(dockerfile, context)
    tag = f"{REPOSITORY}/{_SUBJECT}{name}:{digest(below, files)}"
    with one_builder(), engine_client(engine, timeout_s=_BUILD_SILENCE_S) as client:
        if not at_hand(client, tag):
            say(f"building {tag} from {below}")
            _build(client, files, tag=tag, base=below)
    return tag


def _build(client: Any, files: Mapping[str, bytes], *, tag: str, base: str) -> None:
    tail: deque[str] = deque(maxlen=limits.TAIL_LINES)
    proxies = {key: os.environ[key] for key in _PROXIES if os.environ.get(key)}
    building = f'{_BUILDING}="{_builder()}"'
    try:
        with engine_errors(f"build image {tag}"):
            answers = client.api.build(
                fileobj=io.BytesIO(pack(files, label=building)),
                custom_context=True,
                tag=tag,
                buildargs={"BASE": base, **proxies},
                # Set by the last step: whoever builds on a finished image inherits no mark.
                labels={f"{REPOSITORY}.image": tag, _BUILDING: ""},
                rm=True,
                forcerm=True,
                decode=True,
            )
            failure = ""
            for answer in answers:
                tail.extend(str(answer.get("stream", "")).splitlines())
                failure = failure or str(answer.get("error", ""))
        if failure:
            raise HarnessError(
                f"build image {tag}",
                observed=failure,
                next_step="Read the last lines of the build below",
                tail=[line for line in tail if line.strip()],
            )
    finally:
        _remove_unfinished(client)


def _builder() -> str:
    pid = os.getpid()
    return f"{host_id()} {pid} {start_time(pid)}"


def _remove_unfinished(client: Any) -> None:
    """What builds of ours left that failed, or were killed on this machine: their untagged layers."""
    with suppress(HarnessError), engine_errors("remove what unfinished builds left"):
        for image in client.images.list(filters={"dangling": True, "label": _BUILDING}):
            host, _, builder = image.labels.get(_BUILDING, "").partition(" ")
            pid, _, start = builder.partition(" ")
            if host != host_id() or not (pid.isdigit() and start.isdigit()):
                continue
            # This process builds nothing now; another one that lives may.
            if int(pid) == os.getpid() or start_time(int(pid)) != int(start):
                client.images.remove(image.id)


@contextmanager
def one_builder() -> Iterator[None]:
    """Two builders at once would do the same work twice."""
    with (state_root() / "images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
