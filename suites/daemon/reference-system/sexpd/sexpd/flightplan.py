"""What does a Flight Plan look like as an Org node?

A plan is one line `TITLE: step; step; step`, or a title with one step per following line. The node
has an ID, so that an editor can tell whether it holds it already.
"""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

from sexpd import faults
from sexpd.sexpr import plist

STEPS = 100
LINE_CHARS = 500
_BULLET = re.compile(r"^\s*(?:[-+*]|\d+[.)])\s+")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class PlanError(ValueError):
    """A text that is no plan."""


def node(text: str, *, source: str, wanted_id: object) -> list[Any]:
    """The node of a plan, as a property list.

    Args:
        text: the plan.
        source: the gateway it came through.
        wanted_id: an ID to give it, or None for a new one.

    Raises:
        PlanError: no title, too many steps, lines too long, or an ID that is none.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise PlanError("the plan is empty")
    title, steps = lines[0], [_BULLET.sub("", line).strip() for line in lines[1:]]
    if not steps and ":" in title:
        title, _, rest = title.partition(":")
        steps = [step.strip() for step in rest.split(";")]
    title, steps = _BULLET.sub("", title).strip(" *:"), [step for step in steps if step]
    if faults.on("equal-steps-once"):
        steps = list(dict.fromkeys(steps))
    if not title:
        raise PlanError("the plan has no title")
    if len(steps) > STEPS or any(len(line) > LINE_CHARS for line in [title, *steps]):
        raise PlanError(f"the plan has over {STEPS} steps or a line over {LINE_CHARS} characters")
    if wanted_id is not None and not (isinstance(wanted_id, str) and _ID.fullmatch(wanted_id)):
        raise PlanError(f"{wanted_id!r} is no ID of letters, digits and ._:-")
    created = time.strftime("[%Y-%m-%d %a %H:%M]", time.gmtime())
    new = uuid.uuid5(uuid.NAMESPACE_URL, text) if faults.on("plan-id-of-text") else uuid.uuid4()
    properties = plist(id=wanted_id or str(new), created=created, source=source)
    if faults.on("emacs-properties-lost"):
        properties = []
    return plist(title=title, todo="TODO", properties=properties, steps=steps)
