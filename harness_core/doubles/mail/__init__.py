"""A mail server on loopback that keeps what it is given: what really went out by SMTP.

- ``_mailbox.py``: :func:`open_mailbox`, a server with one account; its mails and refusals.
- ``_server.py``: the process behind it, ``python -m harness_core.doubles.mail``; aiosmtpd speaks the
  protocol, in a process of its own because it lives on asyncio.
- ``_mail.py``: :class:`Mail`, one message as it arrived; :class:`Refusal`, what is not taken.
"""

from harness_core.base.machine import need_extra

need_extra("mail", action="use harness_core.doubles.mail")

from harness_core.doubles.mail._mail import Mail, Refusal
from harness_core.doubles.mail._mailbox import Mailbox, open_mailbox

__all__ = ["Mail", "Mailbox", "Refusal", "open_mailbox"]
