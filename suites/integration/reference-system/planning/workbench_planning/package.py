"""The package of a benchmark: put together when its environment is handed over, and whole or none.

A library without I/O: bytes in, bytes or what is lacking out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from workbench_contract import package
from workbench_contract.handover import EnvironmentSolid, HandedFile
from workbench_contract.objectives import Objectives
from workbench_contract.package import (
    GEOMETRY_METADATA,
    INDEX,
    JITTER,
    MOVING_PARTS,
    PACKAGE,
    VIEWS_N,
    Geometry,
    Jitter,
    MovingParts,
    Package,
    PartThatMoves,
)
from workbench_contract.renders import Pictures
from workbench_planning import objectives as objectives_file


def belongs(path: str) -> bool:
    """Whether a path is one of a package's, which nobody writes but the system."""
    return path.startswith(f"{PACKAGE}/")


def put_together(
    objectives_data: bytes,
    objectives: Objectives,
    solids: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, Any],
    views: Mapping[str, bytes],
) -> dict[str, bytes]:
    """The files of a package, path to bytes.

    Args:
        objectives_data: the file itself.
        objectives: what it says.
        solids: of the environment, by the model ``EnvironmentSolid``.
        pictures: of it, by the model ``Pictures``.
        views: path to bytes of each picture.
    """
    files = dict(views)
    files |= {path: _json(model) for path, model in _told(objectives, solids).items()}
    index = Package(
        objectives=handed(objectives_file.FILE, objectives_data),
        geometry=handed(GEOMETRY_METADATA, files[GEOMETRY_METADATA]),
        moving_parts=handed(MOVING_PARTS, files[MOVING_PARTS]),
        jitter=handed(JITTER, files[JITTER]),
        pictures=Pictures.model_validate(pictures),
    )
    files[INDEX] = _json(index)
    return files


def lacking(files: Mapping[str, bytes], solids: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a hand-over lacks of a package that is whole and agrees with itself; nothing if it has all.

    Args:
        files: of the hand-over, path to bytes.
        solids: that the hand-over says its environment has.
    """
    if INDEX not in files:
        return [INDEX]
    objectives, findings = objectives_file.read_objectives(files.get(objectives_file.FILE, b""))
    if objectives is None or findings:
        return [objectives_file.FILE]
    try:
        index = Package.model_validate_json(files[INDEX])
    except ValidationError as error:
        return [f"{INDEX}: {error.errors()[0]['msg']}"]
    listed = [index.objectives, index.geometry, index.moving_parts, index.jitter]
    listed += [
        HandedFile(path=each.path, sha256=each.sha256, size_bytes=each.size_bytes)
        for each in index.pictures.views
    ]
    wrong = [
        each.path
        for each in listed
        if each.path not in files or handed(each.path, files[each.path]) != each
    ]
    views = {(each.yaw_deg, each.pitch_deg, each.path) for each in index.pictures.views}
    if len(views) != VIEWS_N:
        wrong.append(f"{package.VIEWS}: {len(views)} of {VIEWS_N}")
    told = _told(objectives, solids)
    wrong += [path for path, model in told.items() if files.get(path) != _json(model)]
    return list(dict.fromkeys(wrong))


def _told(objectives: Objectives, solids: Sequence[Mapping[str, Any]]) -> dict[str, BaseModel]:
    """What follows from objectives and measured solids, by its path."""
    moved = objectives.moved_object
    return {
        GEOMETRY_METADATA: Geometry(
            solids=[EnvironmentSolid.model_validate(dict(each)) for each in solids]
        ),
        MOVING_PARTS: MovingParts(
            moving_parts=[
                PartThatMoves(name=each.name, type=each.type, dof=each.dof)
                for each in objectives.moving_parts
            ]
        ),
        JITTER: Jitter(
            moved_object=moved.label,
            start_mm=moved.start_mm,
            static_randomization=moved.static_randomization,
            runtime_jitter=moved.runtime_jitter,
            randomization=objectives.randomization,
        ),
    }


def handed(path: str, data: bytes) -> HandedFile:
    """A file without its bytes."""
    return HandedFile(path=path, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def _json(model: BaseModel) -> bytes:
    return (model.model_dump_json(indent=2) + "\n").encode()
