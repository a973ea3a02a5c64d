"""Messages over SMTP, at a host and port that can be a recorder on loopback."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any, ClassVar

from butlers.errors import ButlerError
from butlers.modules.base import Base

_TIMEOUT_S = 10.0


class Email(Base):
    """`[modules.email] smtp_host, smtp_port, recipient`; credentials are variables."""

    name = "email"
    keys: ClassVar[Mapping[str, type]] = {"smtp_host": str, "smtp_port": int, "recipient": str}
    credentials = ("EMAIL_ADDRESS", "EMAIL_PASSWORD")

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        to = recipient or self._table.get("recipient")
        if not to:
            raise ButlerError("cannot send by email: no recipient and no modules.email.recipient")
        mail = EmailMessage()
        mail["From"] = self._credentials["EMAIL_ADDRESS"]
        mail["To"] = str(to)
        mail["Subject"] = message.splitlines()[0][:80] if message.strip() else "(empty)"
        mail.set_content(message)
        try:
            await asyncio.to_thread(self._deliver, mail)
        except (OSError, smtplib.SMTPException) as error:
            raise ButlerError(f"cannot send by email: {type(error).__name__}: {error}") from error
        return {"channel": "email", "recipient": to}

    def _deliver(self, mail: EmailMessage) -> None:
        host = str(self._table.get("smtp_host", "127.0.0.1"))
        port = int(self._table.get("smtp_port", 587))
        with smtplib.SMTP(host, port, timeout=_TIMEOUT_S) as server:
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls()
                server.ehlo()
            if server.has_extn("auth"):
                server.login(
                    self._credentials["EMAIL_ADDRESS"], self._credentials["EMAIL_PASSWORD"]
                )
            server.send_message(mail)
