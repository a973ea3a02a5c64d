"""A mailbox takes what a client sends it, from who may, and keeps it as it came."""

from __future__ import annotations

import smtplib
import socket
from email.message import EmailMessage

import pytest
import trio

from harness_core.base.errors import BadInput, NotReady
from harness_core.base.evidence import open_evidence
from harness_core.doubles.mail import Mailbox, Refusal, open_mailbox
from harness_core.process import open_run

pytestmark = pytest.mark.real


@pytest.fixture
async def mailbox(tmp_path):
    """A mailbox for one test."""
    evidence = open_evidence(tmp_path / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        open_mailbox(run, evidence=evidence) as mailbox,
    ):
        yield mailbox


def a_mail(text: str = "hello\n", *, to: str = "a@example.test") -> EmailMessage:
    """A mail from the account of the mailbox."""
    mail = EmailMessage()
    mail["From"] = "butlers@example.test"
    mail["To"] = to
    mail["Subject"] = "a subject"
    mail.set_content(text)
    return mail


async def sent(mailbox: Mailbox, mail: EmailMessage, *, password: str | None = None) -> None:
    """Send a mail as a client of the world would."""

    def send() -> None:
        with smtplib.SMTP(mailbox.host, mailbox.port, timeout=10) as client:
            client.login(mailbox.account, mailbox.password if password is None else password)
            client.send_message(mail)

    await trio.to_thread.run_sync(send)


async def test_a_mail_is_kept_as_it_came(mailbox):
    """Envelope, login, headers and text of a mail are what the client sent."""
    await sent(mailbox, a_mail("one\n.two dots at the start\nümlaut\n"))
    (mail,) = mailbox.mails

    assert (1, mailbox.account, mailbox.account) == (mail.sequence, mail.login, mail.sender)
    assert ("a@example.test",) == mail.recipients
    assert "a subject" == mail.message["Subject"]
    assert "one\n.two dots at the start\nümlaut\n" == mail.text


async def test_a_wrong_password_is_refused(mailbox):
    """Without the account's password no mail is taken."""
    with pytest.raises(smtplib.SMTPAuthenticationError):
        await sent(mailbox, a_mail(), password="wrong")

    assert () == mailbox.mails


async def test_mail_without_a_login_is_refused(mailbox):
    """Before its login a client is refused."""

    def send() -> None:
        with smtplib.SMTP(mailbox.host, mailbox.port, timeout=10) as client:
            client.send_message(a_mail())

    with pytest.raises(smtplib.SMTPSenderRefused):
        await trio.to_thread.run_sync(send)

    assert () == mailbox.mails


async def test_a_refusal_is_counted_and_ends(mailbox):
    """A refusal for one recipient, once: the first try fails, the second is taken."""
    refusal = Refusal(reply="451 4.3.0 later", recipient="a@*", times=1)
    mailbox.refuse(refusal)
    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        await sent(mailbox, a_mail())
    await sent(mailbox, a_mail())

    assert 451 == caught.value.recipients["a@example.test"][0]
    assert ("a@example.test",) == mailbox.refused
    assert 1 == len(mailbox.mails)


async def test_a_refusal_can_be_withdrawn(mailbox):
    """A refusal for every recipient holds until it is taken back."""
    refusal = Refusal()
    mailbox.refuse(refusal)
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        await sent(mailbox, a_mail())
    mailbox.accept(refusal)
    await sent(mailbox, a_mail())

    assert 1 == len(mailbox.mails)


async def test_a_server_that_hangs_up_keeps_what_it_took(mailbox):
    """Asked to, it hangs up at the goodbye; the mail before it is there, and later ones end well."""

    def send() -> tuple[int, bytes]:
        client = smtplib.SMTP(mailbox.host, mailbox.port, timeout=10)
        client.login(mailbox.account, mailbox.password)
        client.send_message(a_mail())
        return client.quit()

    mailbox.hang_up(at_goodbye=True)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        await trio.to_thread.run_sync(send)
    mailbox.hang_up(at_goodbye=False)
    code, _ = await trio.to_thread.run_sync(send)

    assert 221 == code
    assert 2 == len(mailbox.mails)


async def test_a_server_may_take_a_mail_and_not_say_so(mailbox):
    """Asked to, it hangs up where it would confirm a mail; that is there all the same, and the next is said."""

    def send() -> None:
        with smtplib.SMTP(mailbox.host, mailbox.port, timeout=10) as client:
            client.login(mailbox.account, mailbox.password)
            client.send_message(a_mail())

    mailbox.take_in_silence(silent=True)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        await trio.to_thread.run_sync(send)
    mailbox.take_in_silence(silent=False)
    await trio.to_thread.run_sync(send)

    assert 2 == len(mailbox.mails)


async def test_waiting_for_mail_that_does_not_come_says_what_came(mailbox):
    """The wait counts only what it is asked for, and its error names what there was."""
    await sent(mailbox, a_mail(to="b@example.test"))
    (mail,) = await mailbox.wait_for(seconds=5)
    with pytest.raises(NotReady, match=r"b@example\.test"):
        await mailbox.wait_for(where=lambda mail: "c@" in mail.recipients[0], seconds=0.1)

    assert ("b@example.test",) == mail.recipients
    with pytest.raises(NotReady, match="no recipient"):
        await mailbox.wait_for(since=mailbox.mark(), seconds=0.1)


async def test_the_evidence_holds_the_mails_and_no_password(tmp_path):
    """What was taken can be read afterwards; the password nowhere. The port is free again."""
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run:
        async with open_mailbox(run, evidence=evidence) as mailbox:
            await sent(mailbox, a_mail(f"the password is {mailbox.password}\n"))
        files = [path for path in evidence.path.rglob("*") if path.is_file()]
        texts = [path.read_text(encoding="utf-8") for path in files]

    assert any("the password is" in text for text in texts)
    assert not any(mailbox.password in text for text in texts)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((mailbox.host, mailbox.port), timeout=1)


@pytest.mark.parametrize("reply", ["250 fine", "no code", "550"])
def test_a_reply_that_refuses_nothing_is_bad_input(reply):
    """A refusal must be one to the client: 4xx or 5xx with a text."""
    with pytest.raises(BadInput, match="refusal: reply"):
        Refusal(reply=reply)
