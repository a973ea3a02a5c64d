"""The joints of a design, read off the solids that its script has connected (``workbench_contract/joints.py``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench_worker.modelerror import ModelError

Floats = npt.NDArray[np.float64]

_LABEL_CHARS = 128
#: What parts may be off their joint: noise of the geometry.
_OFF_MM = 1e-5
_OFF = 1e-7
_ROUND_DEG = 360.0


def read(model: str, shapes: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """All connected joints of a design, by the model ``DesignJoint``; and what is said of kinds that cannot be mapped.

    Args:
        model: the script, for messages.
        shapes: by the names of their parts, in the order of the design.

    Raises:
        ModelError: a joint cannot be mapped; its label is named.
    """
    return _Reader(model, shapes).read()


class _Reader:
    def __init__(self, model: str, shapes: Mapping[str, Any]) -> None:
        self._model = model
        self._shapes = shapes

    def read(self) -> tuple[list[dict[str, Any]], list[str]]:
        from build123d import LinearJoint, RevoluteJoint, RigidJoint

        mapped = (RigidJoint, RevoluteJoint, LinearJoint)
        every = [each for shape in self._shapes.values() for each in shape.joints.values()]
        others = [
            self._told(each, f"is a {type(each).__name__}, which cannot be simulated")
            for each in every
            if not isinstance(each, mapped)
        ]
        joints = [each for each in every if isinstance(each, mapped)]
        found: list[dict[str, Any]] = []
        seen: set[frozenset[int]] = set()
        connected: set[int] = set()
        for joint in joints:
            other = joint.connected_to
            if other is None or not isinstance(other, mapped):
                continue
            pair = frozenset((id(joint), id(other)))
            connected |= pair
            if pair not in seen:
                seen.add(pair)
                found.append(self._between(joint, other))
        for joint in joints:
            if not isinstance(joint, RigidJoint) and id(joint) not in connected:
                self._refuse(joint, "moves, and is connected to nothing")
        labels = [each["name"] for each in found if each["kind"] != "rigid"]
        for label in labels:
            if labels.count(label) > 1:
                detail = f"cannot use {self._model}: two joints that move are labelled {label!r}"
                raise ModelError(f"{detail}. Give each a label of its own")
        return found, others

    def _between(self, joint: Any, other: Any) -> dict[str, Any]:
        """Two joints that are connected."""
        from build123d import LinearJoint, RevoluteJoint, RigidJoint

        for each in (joint, other):
            if self._part_of(each) is None:
                self._refuse(joint, f"is connected to {each.label!r} of what is no part of the design")
        rigid = [each for each in (joint, other) if isinstance(each, RigidJoint)]
        if not rigid:
            kinds = f"{type(joint).__name__} with a {type(other).__name__}"
            self._refuse(joint, f"connects a {kinds}, which cannot be simulated")
        if self._part_of(joint) == self._part_of(other):
            self._refuse(joint, "is connected to its own part")
        moves, held = (joint, other) if other in rigid else (other, joint)
        told = {
            "name": self._label(moves),
            "part": self._part_of(moves),
            "other": self._part_of(held),
        }
        # Places in the world: of the joint that moves, and of the rigid one in it.
        frame, inner = _frame(moves.location), _frame(held.location)
        offset = inner[:, 3] - frame[:, 3]
        if isinstance(moves, RevoluteJoint):
            told |= self._revolute(moves, frame, inner)
        elif isinstance(moves, LinearJoint):
            told |= self._linear(moves, frame, offset)
        else:
            if np.abs(frame[:, :3] - inner[:, :3]).max() > _OFF or _far(offset):
                self._left(moves)
            told |= {"kind": "rigid"}
        told["anchor_mm"] = [float(value) for value in frame[:, 3]]
        return told

    def _revolute(self, joint: Any, frame: Floats, inner: Floats) -> dict[str, Any]:
        if _far(inner[:, 3] - frame[:, 3]):
            self._left(joint)
        value = joint._angle  # noqa: SLF001 - build123d tells it nowhere else
        least, most = self._range(joint, joint.angular_range)
        if value is None:
            self._left(joint)
        if not joint._angle_reference_provided:  # noqa: SLF001 - with a reference of its own it is turned by more
            turned = frame[:, :3].T @ inner[:, :3]
            angle = math.radians(float(value))
            wanted = np.array(
                [
                    [math.cos(angle), -math.sin(angle), 0],
                    [math.sin(angle), math.cos(angle), 0],
                    [0, 0, 1],
                ]
            )
            if np.abs(turned - wanted).max() > _OFF:
                self._left(joint)
        if least is not None and most is not None and most - least >= _ROUND_DEG:
            least = most = None
        return {"kind": "revolute", "axis": _axis(frame), "value": float(value)} | {
            "least": least,
            "most": most,
        }

    def _linear(self, joint: Any, frame: Floats, offset: Floats) -> dict[str, Any]:
        value = joint.position
        if value is None or _far(offset - frame[:, 2] * float(value)):
            self._left(joint)
        least, most = self._range(joint, joint.linear_range)
        return {"kind": "prismatic", "axis": _axis(frame), "value": float(value)} | {
            "least": least,
            "most": most,
        }

    def _range(self, joint: Any, given: Any) -> tuple[float | None, float | None]:
        least, most = (float(value) for value in given)
        if math.isnan(least) or math.isnan(most) or least > most:
            self._refuse(joint, f"has no range: {least:g} to {most:g}")
        return (
            None if math.isinf(least) else least,
            None if math.isinf(most) else most,
        )

    def _part_of(self, joint: Any) -> str | None:
        return next((name for name, each in self._shapes.items() if each is joint.parent), None)

    def _label(self, joint: Any) -> str:
        label = joint.label
        if not isinstance(label, str) or not 0 < len(label) <= _LABEL_CHARS or not label.isprintable():
            self._refuse(joint, f"has no label of 1 to {_LABEL_CHARS} printable characters")
        return str(label)

    def _left(self, joint: Any) -> None:
        self._refuse(joint, "no longer holds: its parts are not where it has put them")

    def _refuse(self, joint: Any, what: str) -> None:
        raise ModelError(self._told(joint, what))

    def _told(self, joint: Any, what: str) -> str:
        label = str(joint.label)[:_LABEL_CHARS]
        return f"cannot use {self._model}: the joint {label!r} {what}. Correct it"


def _frame(location: Any) -> Floats:
    """A place as a matrix of 3 by 4: axes, then origin."""
    found = location.wrapped.Transformation()
    return np.array([[found.Value(row, column) for column in range(1, 5)] for row in range(1, 4)])


def _axis(frame: Floats) -> list[float]:
    axis = frame[:, 2] / np.linalg.norm(frame[:, 2])
    return [float(value) + 0.0 for value in axis]


def _far(offset: Floats) -> bool:
    return float(np.abs(offset).max()) > _OFF_MM
