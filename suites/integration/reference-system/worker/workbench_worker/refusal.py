"""An operation that is not carried out, and the status that says so."""

from __future__ import annotations


class Refused(Exception):
    """Nothing was done.

    Args:
        status: 403 for what leaves the session, 404 for what is not there, 409 for what does not
            fit what is there.
        detail: one sentence.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
