"""Mode ``live``: calls go to a provider with the real key; nothing is retried here.

The key lives in this object and in the outgoing request alone: it is neither logged, nor
ledgered, nor part of any message. Retries are the client's, so each attempt is one call here, one
line in the ledger and one reservation.
"""

from __future__ import annotations

from typing import Final

import httpx

from harness_core.base import limits
from harness_core.doubles.model._backend import Call, Relay
from harness_core.doubles.model._refusal import Refusal

#: Request headers that concern the provider; the rest (cookies, proxies, keys) stays here.
_FORWARDED: Final = ("anthropic-version", "anthropic-beta", "content-type", "accept", "user-agent")

_DEFAULT_VERSION: Final = "2023-06-01"

#: API that is passed on → the header with its key, and what stands before the key.
_KEYS: Final = {
    "/v1/messages": ("x-api-key", ""),
    "/v1/responses": ("authorization", "Bearer "),
    "/v1/embeddings": ("authorization", "Bearer "),
}


class LiveBackend:
    """Forwards calls to a provider.

    Args:
        upstream: base URL, e.g. ``https://api.anthropic.com``.
        key: the provider's key.
    """

    name = "live"
    charges = True

    def __init__(self, upstream: str, *, key: str) -> None:
        self._upstream = upstream.rstrip("/")
        self._key = key
        # No redirects: the key goes to the host the operator named and to no other.
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(limits.LLM_CALL_S), follow_redirects=False
        )

    async def answer(self, call: Call) -> Relay:
        """Pass a call on and return the response as it comes.

        Raises:
            Refusal: 403 for an API that is not passed on, 502 when the provider cannot be reached.
        """
        key = next((shown for api, shown in _KEYS.items() if call.path.startswith(api)), None)
        if key is None:
            # Its usage could not be read, so the budget could not be kept.
            raise Refusal(403, f"{call.path} is served offline only", reason="not_served_live")
        headers = {name: call.headers[name] for name in _FORWARDED if name in call.headers}
        headers.setdefault("anthropic-version", _DEFAULT_VERSION)
        headers |= {key[0]: key[1] + self._key, "accept-encoding": "identity"}
        request = self._client.build_request(
            "POST", self._upstream + call.path, content=call.raw, headers=headers
        )
        try:
            return Relay(response=await self._client.send(request, stream=True))
        except httpx.HTTPError as error:
            message = f"cannot reach the upstream {self._upstream}: {type(error).__name__}: {error}"
            raise Refusal(502, message) from error

    async def aclose(self) -> None:
        """Close idle connections."""
        await self._client.aclose()
