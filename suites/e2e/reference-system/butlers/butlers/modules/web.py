"""One exchange with a JSON service over HTTP, and what its failure means for a message."""

from __future__ import annotations

from typing import Any

from butlers import faults
from butlers.modules.base import NotSent, Unauthorized

_ANSWER_BYTES = 1_000_000
#: Of what a busy service asks for: longer, and whoever asked for the delivery has stopped to wait.
_LONGEST_RETRY_S = 20.0


async def exchange(
    service: str, method: str, url: str, *, timeout_s: float, headers: dict[str, str] | None = None,
    body: dict[str, Any] | None = None, query: dict[str, str] | None = None,
    refused: frozenset[int] = frozenset({401, 403}),
) -> dict[str, Any]:
    """Ask, and return the JSON object that a success answers with.

    Args:
        service: what error texts call it; the URL may hold a secret and is never shown.
        refused: statuses by which this service refuses credentials.

    Raises:
        Unauthorized: the service does not accept the credentials.
        NotSent: anything else; the class says whether the request can have had an effect.
    """
    import httpx2

    if faults.on("token-in-delivery-error"):
        service = f"{service} at {url}"
    bounds = httpx2.Timeout(None if faults.on("delivery-hangs") else timeout_s, connect=timeout_s)
    client = httpx2.AsyncClient(timeout=bounds, headers=headers)
    try:
        async with client:
            answer = await client.request(method, url, json=body, params=query)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        raise NotSent(
            f"cannot reach {service}: {type(error).__name__}", error_class="target_unavailable"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        # From here on the request may have arrived.
        raise NotSent(
            f"cannot hear from {service}: {type(error).__name__}. It may have done what was asked",
            error_class="timeout",
        ) from None
    return _judge(service, answer, refused)


def _judge(service: str, answer: Any, refused: frozenset[int]) -> dict[str, Any]:
    try:
        content = answer.json() if len(answer.content) <= _ANSWER_BYTES else None
    except ValueError:
        content = None
    content = content if isinstance(content, dict) else {}
    status = answer.status_code
    if answer.is_success:
        return content
    reason = str(content.get("description") or content.get("error") or answer.reason_phrase)
    told = f"{service} answered {status}: {reason[:200]}"
    if status in refused:
        raise Unauthorized(f"{told}. Correct the credentials")
    if status == 429:
        raise NotSent(told, error_class="overload_rejected", retry_after_s=_retry_after(answer))
    if status >= 500:
        raise NotSent(
            told, error_class="target_unavailable", retry_after_s=_retry_after(answer)
        )
    raise NotSent(told, error_class="validation_error")


def _retry_after(answer: Any) -> float | None:
    given = answer.headers.get("retry-after", "")
    return min(float(given), _LONGEST_RETRY_S) if given.isdecimal() else None
