"""What a refusal must look like: a status of an error, and a sentence for people."""

from __future__ import annotations

import re

from harness_core.doubles.http import Response

__all__ = ["OUTSIDE", "expect_refused"]

#: How a path outside the session, or a link to one, may be refused: no contract names one status.
OUTSIDE = (400, 403, 404, 409, 422)


def expect_refused(answer: Response, *statuses: int, says: str = "") -> str:
    """Assert that a request was refused; returns the sentence that says why.

    Args:
        answer: what was answered.
        statuses: any of these, each from 400 on.
        says: a pattern that the sentence must match, in any case.
    """
    wanted = " or ".join(map(str, statuses))

    assert statuses, "no status is a refusal by itself: name those that are expected"
    assert min(statuses) >= 400, f"{min(statuses)} refuses nothing"
    assert answer.status in statuses, f"expected a refusal with {wanted}, found {answer}"
    assert answer.content_type in {"application/json", "application/problem+json"}, (
        f"expected a refusal as JSON, found {answer.content_type!r}: {answer}"
    )
    detail = answer.json().get("detail")
    reason = detail if isinstance(detail, str) else str(detail or "")

    assert reason.strip(), f"expected a refusal that says why, found {answer}"
    assert re.search(says, reason, re.IGNORECASE), f"expected it to say {says!r}, found {answer}"
    return reason
