"""The process of a mailbox: takes mail on an inherited socket and records each as one JSON line.

What it refuses stands in a file that it reads at each recipient, so that a test can change its mind
without a protocol between the two processes.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
from collections import Counter
from fnmatch import fnmatchcase
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from harness_core.base.bridge import serve_protocol
from harness_core.doubles.mail._mail import HANGS_UP, SAYS_NOTHING

#: Handed over in the environment: the arguments of a process are readable by every user.
PASSWORD_VARIABLE: Final = "HARNESS_MAIL_PASSWORD"  # noqa: S105 - a name

_TAKEN: Final = "250 2.0.0 taken"


# ruff: noqa: ARG002 - the library hands over more than is needed here


class _Handler:
    """What aiosmtpd calls; its method names are the library's."""

    def __init__(self, *, account: str, password: str, spool: Path, refusals: Path) -> None:
        self._account = account
        self._password = password
        self._spool = spool
        self._refusals = refusals
        self._used: Counter[str] = Counter()

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        """Compare what a client logs in with."""
        given = data if isinstance(data, LoginPassword) else LoginPassword(b"", b"")
        login = given.login.decode(errors="replace")
        accepted = login == self._account and compare_digest(
            given.password, self._password.encode()
        )
        # handled=False leaves the "535" to the library.
        return AuthResult(success=accepted, handled=False, auth_data=login)

    async def handle_RCPT(  # noqa: N802 - the library's name and order
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """Take a recipient, unless a refusal is for it."""
        for refusal in json.loads(self._refusals.read_text(encoding="utf-8")):
            key = refusal["key"]
            left = refusal["times"] is None or self._used[key] < refusal["times"]
            if left and fnmatchcase(address, refusal["recipient"]):
                self._used[key] += 1
                self._write({"kind": "refused", "recipient": address, "reply": refusal["reply"]})
                return str(refusal["reply"])
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 taken"

    async def handle_DATA(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Record a mail before it is confirmed."""
        content = envelope.content
        raw = content if isinstance(content, bytes) else str(content or "").encode()
        self._write(
            {
                "kind": "mail",
                "login": str(session.auth_data) if session.authenticated else "",
                "sender": envelope.mail_from or "",
                "recipients": envelope.rcpt_tos,
                "content": base64.b64encode(raw).decode(),
            }
        )
        if self._refusals.with_name(SAYS_NOTHING).exists():
            transport: Any = server.transport
            transport.abort()
        return _TAKEN

    async def handle_QUIT(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Say goodbye, or hang up."""
        if self._refusals.with_name(HANGS_UP).exists():
            transport: Any = server.transport
            transport.abort()
        return "221 2.0.0 bye"

    def _write(self, event: dict[str, object]) -> None:
        with self._spool.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


def main() -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m harness_core.doubles.mail")
    parser.add_argument("--fd", type=int, required=True, help="the listening socket")
    parser.add_argument("--account", required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--refusals", type=Path, required=True)
    given = parser.parse_args()
    handler = _Handler(
        account=given.account,
        password=os.environ.pop(PASSWORD_VARIABLE, ""),
        spool=given.spool,
        refusals=given.refusals,
    )

    def session(loop: Any) -> SMTP:
        # Loopback only, so a password in the clear crosses no network.
        return SMTP(
            handler,
            hostname="localhost",
            authenticator=handler.authenticate,
            auth_required=True,
            auth_require_tls=False,
            enable_SMTPUTF8=True,
            loop=loop,
        )

    serve_protocol(session, descriptor=given.fd)
    return 0
