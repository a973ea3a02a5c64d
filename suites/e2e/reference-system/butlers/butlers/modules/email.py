"""Messages over SMTP, at a host and port that can be a recorder on loopback."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import TYPE_CHECKING, Any, ClassVar

from butlers import faults
from butlers.errors import ButlerError
from butlers.modules.base import Base, NotSent, Unauthorized

if TYPE_CHECKING:
    import aiosmtplib

_SUBJECT_CHARS = 80
_IMPLICIT_TLS_PORT = 465
_SMTP_LATER = range(400, 500)


class Email(Base):
    """`[modules.email] smtp_host, smtp_port, recipient, timeout_s`; credentials are variables."""

    name = "email"
    keys: ClassVar[Mapping[str, type]] = {"smtp_host": str, "smtp_port": int, "recipient": str}
    variables: ClassVar[Mapping[str, str]] = {
        "smtp_host": "EMAIL_SMTP_HOST", "smtp_port": "EMAIL_SMTP_PORT",
        "recipient": "EMAIL_RECIPIENT",
    }
    credentials = ("EMAIL_ADDRESS", "EMAIL_PASSWORD")

    async def start(self) -> None:
        server = await self._logged_in()
        await _leave(server)

    async def send(self, recipient: str | None, message: str) -> dict[str, Any]:
        import aiosmtplib

        mail = self._mail(recipient or self._table.get("recipient"), message)
        try:
            server = await self._logged_in()
        except Unauthorized as error:
            raise NotSent(str(error), error_class="validation_error") from error
        try:
            _, answer = await server.send_message(mail)
        except (aiosmtplib.SMTPRecipientsRefused, aiosmtplib.SMTPResponseException) as error:
            codes = [
                refusal.code for refusal in getattr(error, "recipients", ()) or (error,)
            ]
            later = all(code in _SMTP_LATER for code in codes)
            raise NotSent(
                f"the mail server refused: {error}",
                error_class="target_unavailable" if later else "validation_error",
            ) from error
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise NotSent(
                f"cannot hear from the mail server: {type(error).__name__}. "
                "It may have taken the message",
                error_class=(
                    "validation_error" if isinstance(error, ValueError)
                    else "target_unavailable" if faults.on("mail-resent")
                    else "timeout"
                ),
            ) from error
        finally:
            await _leave(server)
        return {"recipient": str(mail["To"]), "message_id": mail["Message-ID"], "answer": answer}

    def _mail(self, recipient: Any, message: str) -> EmailMessage:
        if not recipient:
            raise NotSent(
                "cannot send by email: no recipient and no modules.email.recipient",
                error_class="validation_error",
            )
        mail = EmailMessage()
        sender = self._credentials["EMAIL_ADDRESS"]
        try:
            mail["From"] = sender
            mail["To"] = str(recipient).lower() if faults.on("recipient-folded") else str(recipient)
        except (ValueError, IndexError) as error:
            raise NotSent(
                f"cannot send by email: {recipient!r} is no address",
                error_class="validation_error",
            ) from error
        mail["Subject"] = " ".join(message.split())[:_SUBJECT_CHARS] or "(empty)"
        mail["Date"] = formatdate()
        if faults.on("mail-dated-by-the-wall"):
            mail.replace_header("Date", formatdate(localtime=True)[:-5] + "+0000")
        mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2] or None)
        mail.set_content(message[:60] if faults.on("mail-cut") else message)
        return mail

    async def _logged_in(self) -> aiosmtplib.SMTP:
        """A server that has accepted the credentials."""
        import aiosmtplib

        host = str(self._table.get("smtp_host", "127.0.0.1"))
        port = int(self._table.get("smtp_port", 587))
        server = aiosmtplib.SMTP(
            hostname=host, port=port, timeout=self.timeout_s,
            use_tls=port == _IMPLICIT_TLS_PORT,
        )
        try:
            await server.connect()
            if server.get_transport_info("sslcontext") is None and not _is_loopback(host):
                raise ButlerError(
                    f"cannot log in at {host}:{port}: it offers no TLS, and the password would "
                    "be readable on the way. Use another port or server"
                )
            await server.login(
                self._credentials["EMAIL_ADDRESS"], self._credentials["EMAIL_PASSWORD"]
            )
        except aiosmtplib.SMTPAuthenticationError as error:
            await _leave(server)
            raise Unauthorized(
                f"the mail server refused the login: {error.code}. Correct the credentials"
            ) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            await _leave(server)
            raise NotSent(
                f"cannot reach the mail server at {host}:{port}: {type(error).__name__}",
                error_class="target_unavailable",
            ) from error
        except BaseException:
            server.close()
            raise
        return server


async def _leave(server: aiosmtplib.SMTP) -> None:
    """Say goodbye when the server still listens; the message has its outcome already."""
    import aiosmtplib

    try:
        if server.is_connected:
            await server.quit()
    except (aiosmtplib.SMTPException, OSError):
        server.close()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
