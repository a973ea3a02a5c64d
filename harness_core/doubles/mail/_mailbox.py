"""A mail server with one account, as a test holds it."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from harness_core.base import limits
from harness_core.base.bridge import anywhere
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.doubles.mail._mail import HANGS_UP, SAYS_NOTHING, Mail, Refusal
from harness_core.ports import Probe, Stage, await_ready, reason_of
from harness_core.process import Child, Run

_FIRST_DESCRIPTOR: Final = 3
#: Read by `_server.py`, which is not imported here: only its process needs the library.
_PASSWORD_VARIABLE: Final = "HARNESS_MAIL_PASSWORD"  # noqa: S105 - a name

#: What the process needs of ours; it listens on an inherited socket and opens no connection.
_INHERITED: Final = ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV")

#: The greeting of a server that is ready (RFC 5321, 3.1).
_GREETING: Final = b"220 "


class Mailbox:
    """A running mail server; built only by :func:`open_mailbox`. May be used from any loop.

    Attributes:
        host: where it listens.
        port: there.
        account: the one address that may log in.
        password: of that account; kept out of all evidence.
        child: its process.
    """

    def __init__(
        self, *, port: int, account: str, password: str, spool: Path, refusals: Path, child: Child
    ) -> None:
        self.host = "127.0.0.1"
        self.port = port
        self.account = account
        self.password = password
        self.child = child
        self._spool = spool
        self._refusals = refusals
        self._hanging_up = refusals.with_name(HANGS_UP)
        self._silent = refusals.with_name(SAYS_NOTHING)
        self._refused: list[tuple[str, Refusal]] = []

    @property
    def mails(self) -> tuple[Mail, ...]:
        """Every mail taken so far."""
        found = [event for event in self._events() if event["kind"] == "mail"]
        return tuple(
            Mail(
                sequence=number,
                login=event["login"],
                sender=event["sender"],
                recipients=tuple(event["recipients"]),
                content=base64.b64decode(event["content"]),
            )
            for number, event in enumerate(found, start=1)
        )

    @property
    def refused(self) -> tuple[str, ...]:
        """The recipients that were refused so far."""
        return tuple(e["recipient"] for e in self._events() if e["kind"] == "refused")

    def mark(self) -> int:
        """Sequence number of the last mail so far, for a later ``since``."""
        return len(self.mails)

    @anywhere
    async def wait_for(
        self,
        *,
        count: int = 1,
        since: int = 0,
        where: Callable[[Mail], bool] = lambda _mail: True,
        seconds: float,
    ) -> list[Mail]:
        """Wait until ``count`` mails have come that ``where`` accepts; returns them.

        Raises:
            NotReady: fewer came within ``seconds``; says to whom those that did were addressed.
        """

        async def enough() -> list[Mail] | None:
            found = [mail for mail in self.mails if mail.sequence > since and where(mail)]
            return found if len(found) >= count else None

        def observed() -> str:
            to = [", ".join(mail.recipients) for mail in self.mails if mail.sequence > since]
            return f"it took mail for {'; '.join(to) or 'no recipient'}"

        with deadline(f"see {count} mails", seconds=seconds, observed=observed):
            return await until(enough)

    def refuse(self, refusal: Refusal) -> None:
        """Begin to refuse; the latest refusal is asked first."""
        self._refused.insert(0, (secrets.token_hex(4), refusal))
        self._write()

    def accept(self, refusal: Refusal) -> None:
        """End a refusal; nothing happens when it is not there."""
        self._refused = [pair for pair in self._refused if pair[1] is not refusal]
        self._write()

    def hang_up(self, *, at_goodbye: bool) -> None:
        """From now on hang up at ``QUIT`` without an answer, or answer it again.

        What was taken before stays taken (RFC 5321, 4.1.1.10).
        """
        if at_goodbye:
            self._hanging_up.touch()
        else:
            self._hanging_up.unlink(missing_ok=True)

    def take_in_silence(self, *, silent: bool) -> None:
        """From now on hang up when a mail has been taken, before that is said, or say it again."""
        if silent:
            self._silent.touch()
        else:
            self._silent.unlink(missing_ok=True)

    def _write(self) -> None:
        rows = [{"key": key, **dataclasses.asdict(refusal)} for key, refusal in self._refused]
        # The server must never read half a file.
        whole = self._refusals.with_suffix(".new")
        whole.write_text(json.dumps(rows), encoding="utf-8")
        whole.replace(self._refusals)

    def _events(self) -> list[dict[str, Any]]:
        lines = self._spool.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


@asynccontextmanager
async def open_mailbox(
    run: Run, *, evidence: Evidence, name: str = "mail", account: str = "butlers@example.test"
) -> AsyncIterator[Mailbox]:
    """Serve mail on loopback for the block; what was taken is in the evidence afterwards.

    Args:
        run: the run it is a child of.
        evidence: keeps its log and, redacted, ``<name>.jsonl``.
        name: what errors, logs and evidence call it.
        account: the one address that may log in; its password is made here.

    Raises:
        ChildExited: it ended before it answered.
        NotReady: it did not greet within ``limits.CHILD_START_S``.
    """
    password = "mail-" + secrets.token_urlsafe(18)
    evidence.redactor.add(password)
    spool = run.directory(f"{name}-spool", in_memory=True)
    (spool / "events.jsonl").touch()
    (spool / "refusals.json").write_text("[]", encoding="utf-8")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    argv = [sys.executable, "-m", "harness_core.doubles.mail", "--fd", str(_FIRST_DESCRIPTOR)]
    argv += ["--account", account, "--spool", str(spool / "events.jsonl")]
    argv += ["--refusals", str(spool / "refusals.json")]
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment[_PASSWORD_VARIABLE] = password
    try:
        starting = run.child(argv, name=name, env=environment, evidence=evidence, listen=[listener])
        async with starting as child:
            listener.close()
            greeted = Stage(name="greeting", probe=_greets(port), seconds=limits.CHILD_START_S)
            await await_ready(child, [greeted])
            mailbox = Mailbox(
                port=port,
                account=account,
                password=password,
                spool=spool / "events.jsonl",
                refusals=spool / "refusals.json",
                child=child,
            )
            try:
                yield mailbox
            finally:
                for mail in mailbox.mails:
                    evidence.append_json(f"{name}.jsonl", _shown(mail))
    finally:
        listener.close()


def _shown(mail: Mail) -> dict[str, Any]:
    return {
        "sequence": mail.sequence,
        "login": mail.login,
        "sender": mail.sender,
        "recipients": mail.recipients,
        "content": mail.content.decode(errors="backslashreplace"),
    }


def _greets(port: int) -> Probe:
    """A connection is greeted as by a server of mail that is ready."""

    async def probe() -> str:
        try:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                greeting = await stream.receive_some()
        except OSError as error:
            return reason_of(error)
        except trio.BrokenResourceError:
            return "connection reset"
        shown = greeting.decode(errors="replace")
        return "" if greeting.startswith(_GREETING) else f"it greeted with {shown!r}"

    return probe
