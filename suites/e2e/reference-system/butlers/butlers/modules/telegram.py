"""Messages over the Telegram Bot API, at a base URL that can be a recorder on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from butlers import faults
from butlers.modules.base import Base, NotSent, Unauthorized
from butlers.modules.web import exchange

#: An unknown token is answered as an unknown path.
_REFUSED = frozenset({401, 404})


class Telegram(Base):
    """`[modules.telegram] base_url, chat_id, timeout_s`; the token is `TELEGRAM_BOT_TOKEN`."""

    name = "telegram"
    keys: ClassVar[Mapping[str, type]] = {"base_url": str, "chat_id": str}
    variables: ClassVar[Mapping[str, str]] = {
        "base_url": "TELEGRAM_API_URL", "chat_id": "TELEGRAM_CHAT_ID",
    }
    credentials = ("TELEGRAM_BOT_TOKEN",)

    async def start(self) -> None:
        await self._ask("getMe")

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        chat = recipient or self._table.get("chat_id")
        if not chat:
            raise NotSent(
                "cannot send by telegram: no recipient and no default chat_id",
                error_class="validation_error",
            )
        try:
            result = await self._ask("sendMessage", {"chat_id": chat, "text": message})
        except Unauthorized as error:
            raise NotSent(str(error), error_class="validation_error") from error
        return {
            "recipient": str(chat), "message_id": str(result.get("message_id") or ""),
            "answer": result,
        }

    async def _ask(self, method: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        base = str(self._table.get("base_url", "https://api.telegram.org")).rstrip("/")
        answer = await exchange(
            "telegram", "POST" if body else "GET",
            f"{base}/bot{self._credentials['TELEGRAM_BOT_TOKEN']}/{method}",
            body=body, timeout_s=self.timeout_s, refused=_REFUSED,
        )
        if answer.get("ok") is not True and not faults.on("delivered-unconfirmed"):
            raise NotSent("telegram did not confirm", error_class="timeout")
        result = answer.get("result")
        return result if isinstance(result, dict) else {}
