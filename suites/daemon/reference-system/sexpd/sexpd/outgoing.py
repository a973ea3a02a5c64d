"""Texts that go out: posted to the webhook of a link."""

from __future__ import annotations

import trio

from sexpd import faults, log
from sexpd.gateways import Link, LinkError
from sexpd.providers import is_loopback

POST_S = 10.0

#: Only for the planted fault `first-address-kept`.
_addresses: dict[str, str] = {}


async def post(link: Link, text: str) -> int:
    """Post a text to a link's webhook.

    Returns:
        The HTTP status, one that means success.

    Raises:
        LinkError: the link has no webhook, or it did not take the text.
    """
    import httpx

    if not link.webhook:
        raise LinkError(f"cannot send to {link.name}: the link has no webhook. Link it with one")
    address = link.address
    if faults.on("first-address-kept"):
        address = _addresses.setdefault(link.name, link.address)
    body = {"platform": link.platform, "address": address, "text": text}
    with trio.move_on_after(POST_S):
        try:
            async with httpx.AsyncClient(
                timeout=None, trust_env=not is_loopback(link.webhook)
            ) as client:
                async with client.stream("POST", link.webhook, json=body) as response:
                    status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # Its text may quote the webhook.
            kind = type(error).__name__
            raise LinkError(f"cannot send to {link.name}: {kind}. Mend its webhook") from error
        if not 200 <= status < 300:
            raise LinkError(f"cannot send to {link.name}: HTTP {status}. Mend its webhook")
        log.info("link.sent", name=link.name, status=status, chars=len(text))
        return status
    if faults.on("silent-webhook-quoted"):
        raise LinkError(f"cannot send to {link.name}: no answer of {link.webhook}")
    raise LinkError(f"cannot send to {link.name}: no answer in {POST_S:g} s. Mend its webhook")
