"""One mail as it arrived, and the refusals a test asks for."""

from __future__ import annotations

import dataclasses
import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Final

from harness_core.base.errors import BadInput

#: A final reply of SMTP that is no success (RFC 5321, 4.2).
_REPLY: Final = re.compile(r"[45]\d\d [ -~]+")

#: A file beside the refusals: while it is there, the server hangs up instead of saying goodbye.
HANGS_UP: Final = "hangs-up"

#: Another: while it is there, the server hangs up when it has a mail, instead of saying so.
SAYS_NOTHING: Final = "says-nothing"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One message that the server took.

    Attributes:
        sequence: order in which they were taken, from 1.
        login: the account that the connection had logged in to; empty for none.
        sender: of the envelope (``MAIL FROM``).
        recipients: of the envelope (``RCPT TO``).
        content: headers and body as they came.
    """

    sequence: int
    login: str
    sender: str
    recipients: tuple[str, ...]
    content: bytes = dataclasses.field(repr=False)

    @property
    def message(self) -> EmailMessage:
        """Headers and body, parsed."""
        return message_from_bytes(self.content, policy=policy.default)

    @property
    def text(self) -> str:
        """The plain text of the body, its line ends as newlines; empty when there is none."""
        body = self.message.get_body(("plain",))
        return str(body.get_content()).replace("\r\n", "\n") if body is not None else ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the server does not take.

    Attributes:
        reply: what it says instead of ``250``: code and text.
        recipient: shell pattern of the envelope's recipient.
        times: how often, counted per mail; ``None`` for ever.
    """

    reply: str = "550 5.1.1 no such mailbox"
    recipient: str = "*"
    times: int | None = None

    def __post_init__(self) -> None:
        """Refuse what would be no refusal to a client."""
        if not _REPLY.fullmatch(self.reply):
            raise BadInput(
                "refusal", key="reply", found=self.reply, expected="a 4xx or 5xx code and a text"
            )
