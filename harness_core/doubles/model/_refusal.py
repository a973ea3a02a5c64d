"""How a provider says no: the status, error type and message of a refused call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Error types of the Messages API by HTTP status (its public error reference).
ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    421: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Refusal(Exception):  # noqa: N818 - an answer of the protocol, not a failure of the harness
    """A call answered with an error of the protocol.

    Args:
        status: HTTP status.
        message: what the client reads.
        headers: extra response headers (``retry-after``).
        reason: short word for the ledger, e.g. ``"budget_exceeded"``.
        fault: what the ledger calls the planted fault that it is, if it is one.
        field: of the request, where it is that field's.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        reason: str = "",
        fault: str = "",
        field: str = "",
    ) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.type = ERROR_TYPES.get(status, "api_error")
        self.reason = reason or self.type
        self.fault = fault
        self.field = field

    def body(self) -> dict[str, Any]:
        """The JSON body of the Messages API for this error."""
        return {"type": "error", "error": {"type": self.type, "message": self.message}}


def invalid(field: str, problem: str) -> Refusal:
    """A malformed request, with the field named as the provider names it."""
    return Refusal(400, f"{field}: {problem}", field=field)
