"""The mail server of a run, as one test sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from harness_core.base.bridge import Loop, View, in_sync
from harness_core.doubles import mail as core
from harness_core.doubles.mail import Mail, Refusal


class Mailbox:
    """What went out by SMTP since the test began; given by the fixture ``mailbox``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code.

    Attributes:
        host: where the server listens, without TLS.
        port: there.
        account: the one address that may log in, and must.
        password: of that account; kept out of all evidence.
    """

    def __init__(self, server: core.Mailbox, *, loop: Loop) -> None:
        self.host = server.host
        self.port = server.port
        self.account = server.account
        self.password = server.password
        self._server = server
        self._since = server.mark()
        self._loop = loop

    @property
    def sync(self) -> SyncMailbox:
        """The same methods, which wait for their answer."""
        return SyncMailbox(self, self._loop)

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: ``SMTP_HOST``, ``SMTP_PORT``, ``SMTP_USERNAME``, ``SMTP_PASSWORD``."""
        return {
            "SMTP_HOST": self.host,
            "SMTP_PORT": str(self.port),
            "SMTP_USERNAME": self.account,
            "SMTP_PASSWORD": self.password,
        }

    @property
    def mails(self) -> tuple[Mail, ...]:
        """Every mail taken since the test began: ``sender``, ``recipients``, ``message``, ``text``."""
        return tuple(mail for mail in self._server.mails if mail.sequence > self._since)

    async def wait_for(
        self,
        *,
        count: int = 1,
        where: Callable[[Mail], bool] = lambda _mail: True,
        seconds: float = 30.0,
    ) -> list[Mail]:
        """Wait until ``count`` mails have come that ``where`` accepts; returns them.

        Raises:
            NotReady: fewer came within ``seconds``; says to whom those that did were addressed.
        """
        return await self._server.wait_for(
            count=count, since=self._since, where=where, seconds=seconds
        )

    @contextmanager
    def refusing(
        self, reply: str = "550 5.1.1 no such mailbox", *, recipient: str = "*"
    ) -> Iterator[None]:
        """Recipients that match a shell pattern are refused during a ``with``, by this reply."""
        refusal = Refusal(reply=reply, recipient=recipient)
        self._server.refuse(refusal)
        try:
            yield
        finally:
            self._server.accept(refusal)


class SyncMailbox(View[Mailbox]):
    """The methods of :class:`Mailbox` for code without a loop."""

    wait_for = in_sync(Mailbox.wait_for)
