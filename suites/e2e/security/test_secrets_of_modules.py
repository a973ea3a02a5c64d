"""The credentials of modules stay with the modules, also when a service fails and the failure is reported.

Telegram and the mail server are stand-ins, recorders on loopback, which fail as a test asks and hold
no real credentials.
"""

from __future__ import annotations

import pytest

from harness_core.doubles.http import Answer, Rule
from harness_core.doubles.mail import Refusal
from harness_core.process import redacted_lines
from suites.e2e.security.test_secrets import found_in_rows, spellings
from suites.e2e.worlds.credentialed import Connected

pytestmark = pytest.mark.covers("E2E-SECRETS")

#: One notification, with every attempt that a service in trouble is granted.
DELIVERY_S = 60.0

TROUBLE = {
    "unauthorised": Answer(status=401, json={"ok": False, "description": "Unauthorized"}),
    "refused": Answer(status=400, json={"ok": False, "description": "chat not found"}),
    "unavailable": Answer(status=503),
    "cut-off": Answer(drop="unanswered"),
}


def credentials(connected: Connected) -> dict[str, str]:
    """What only a module and its service may know."""
    return {
        "the token of the bot": connected.telegram_token,
        "the token of the calendar": connected.calendar_token,
        "the password of the mail account": connected.mail.password,
    }


async def expect_no_credentials(connected: Connected, answer: str) -> None:
    """No credential in the answer to a caller, in a row, or in a log of any butler.

    Raises:
        AssertionError: names the credential and the place.
    """
    secrets = credentials(connected)
    butlers = connected.butlers
    quoted = [
        name
        for name, secret in secrets.items()
        if any(form in answer for form in spellings(secret))
    ]

    assert [] == quoted, f"the answer holds {quoted}: {answer}"
    assert [] == await found_in_rows(butlers, secrets), "no credential of a module stands in a row"
    leaks = [
        f"{name}: {line.text}"
        for name, butler in butlers.butlers.items()
        for line in redacted_lines(butler.child.log)
        if line.known
    ]

    assert [] == leaks, "butlers wrote secrets into their logs"


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
async def test_a_telegram_that_fails_leaks_no_token(
    connected: Connected, token: str, trouble: Answer
) -> None:
    """The address of the Bot API holds its token: an error that quotes the address leaks it."""
    rule = Rule(path="/bot*/sendMessage", answer=trouble)
    connected.telegram.add_rule(rule)
    try:
        result = await connected.butlers["messenger"].try_call(
            "notify", {"channel": "telegram", "message": f"never {token}"}, seconds=DELIVERY_S
        )
    finally:
        connected.telegram.remove_rule(rule)

    assert result.is_error, f"a delivery that failed is answered with {result.text}"
    await expect_no_credentials(connected, result.text)


async def test_a_mail_that_fails_leaks_no_password(connected: Connected, token: str) -> None:
    """A refusal by the mail server is reported without the account's password."""
    refusal = Refusal(recipient=f"{token}@*")
    connected.mail.refuse(refusal)
    arguments = {"channel": "email", "message": "lost", "recipient": f"{token}@example.org"}
    try:
        result = await connected.butlers["messenger"].try_call(
            "notify", arguments, seconds=DELIVERY_S
        )
    finally:
        connected.mail.accept(refusal)

    assert result.is_error, f"what the service refused is answered as a failure\n{result.text}"
    await expect_no_credentials(connected, result.text)


async def test_deliveries_that_arrive_leak_no_credentials(connected: Connected, token: str) -> None:
    """A receipt says what arrived where, not by whose key."""
    answers = [
        await connected.butlers["messenger"].try_call(
            "notify",
            {"channel": channel, "message": f"here {token}", "recipient": recipient},
            seconds=DELIVERY_S,
        )
        for channel, recipient in (("telegram", "4711"), ("email", f"{token}@example.org"))
    ]

    assert [False, False] == [answer.is_error for answer in answers], (
        f"both deliveries are answered\n{answers}"
    )
    await expect_no_credentials(connected, " ".join(answer.text for answer in answers))
