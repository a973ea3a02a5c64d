"""Where a walk over the candidates goes on: after a part, in the version that it began with.

A cursor is good for the constraints that it was made for, in any process and at any time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from workbench_contract.catalogue import CatalogueQuery
from workbench_foundation import faults

#: What a version of the catalogue can be, as the database keeps it.
_VERSIONS = range(1, 2**31)


class BadCursor(ValueError):
    """A cursor that leads nowhere; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A place in a walk.

    Attributes:
        version: of the catalogue.
        after: order of the last part before it: unit cost and id.
    """

    version: int
    after: tuple[Decimal, str]


def write_cursor(cursor: Cursor, query: CatalogueQuery) -> str:
    """A cursor as it is given away."""
    cost, part_id = cursor.after
    told = [cursor.version, str(cost), part_id, _fingerprint(query)]
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def read_cursor(text: str, query: CatalogueQuery) -> Cursor:
    """A cursor that came back.

    Raises:
        BadCursor: it is none, or of a search with other constraints.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        version, cost, part_id, made_for = json.loads(base64.b64decode(padded, b"-_", validate=True))
        after = Decimal(cost)
    except (ValueError, TypeError, InvalidOperation, RecursionError) as error:
        raise BadCursor(_NONE) from error
    sound = isinstance(part_id, str) and after.is_finite()
    if not sound or isinstance(version, bool) or not isinstance(version, int) or version not in _VERSIONS:
        raise BadCursor(_NONE)
    if made_for != _fingerprint(query):
        raise BadCursor(
            "cannot go on from this cursor: it is of a search with other constraints. Repeat those, or "
            "begin without a cursor"
        )
    return Cursor(version=version, after=(after, part_id))


_NONE = "cannot go on from this cursor: it is none. Use next_cursor as it was answered"


def _fingerprint(query: CatalogueQuery) -> str:
    """Of the constraints; how many are shown at once may change within a walk."""
    told = {
        name: f"{value.normalize():f}" if isinstance(value, Decimal) else value
        for name, value in query.model_dump(exclude={"cursor", "limit"}).items()
    }
    if faults.on("catalogue-cursor-forgotten"):
        told["process"] = os.getpid()
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
