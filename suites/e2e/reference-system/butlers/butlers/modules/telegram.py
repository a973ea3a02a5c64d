"""Messages over the Telegram Bot API, at a base URL that can be a recorder on loopback."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, ClassVar

from butlers.errors import ButlerError
from butlers.modules.base import Base

_TIMEOUT_S = 10.0
_ANSWER_BYTES = 1_000_000


class Telegram(Base):
    """`[modules.telegram] base_url, chat_id`; the token is `TELEGRAM_BOT_TOKEN`."""

    name = "telegram"
    keys: ClassVar[Mapping[str, type]] = {"base_url": str, "chat_id": str}
    credentials = ("TELEGRAM_BOT_TOKEN",)

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        chat = recipient or self._table.get("chat_id")
        if not chat:
            raise ButlerError("cannot send by telegram: no recipient and no default chat_id")
        base = str(self._table.get("base_url", "https://api.telegram.org")).rstrip("/")
        url = f"{base}/bot{self._credentials['TELEGRAM_BOT_TOKEN']}/sendMessage"
        answer = await asyncio.to_thread(_post, url, {"chat_id": chat, "text": message})
        return {"channel": "telegram", "recipient": chat, "message_id": answer.get("message_id")}


def _post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        url, data=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
            answer = json.loads(response.read(_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        raise ButlerError(f"cannot send by telegram: the service answered {error.code}") from error
    except (OSError, ValueError) as error:
        # The URL holds the token, so the error's own text is not shown.
        raise ButlerError(
            f"cannot send by telegram: {type(error).__name__} while calling the service"
        ) from None
    if not isinstance(answer, dict) or answer.get("ok") is not True:
        raise ButlerError("cannot send by telegram: the service did not confirm")
    result = answer.get("result")
    return result if isinstance(result, dict) else {}
