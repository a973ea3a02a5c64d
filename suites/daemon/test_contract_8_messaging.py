"""Contract 8, messaging: an address is linked, spoken to and unlinked, and restarts remember which.

A recorder on loopback is a stand-in for the messaging platform: it shows what arrived there, and
answers, fails or hangs up as a test asks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness_core.doubles.http import Answer, Recorder, Rule, open_recorder
from suites.daemon.daemon import Daemon
from suites.daemon.messages import (
    ask,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    user_input,
)
from suites.daemon.wire import Connection, Keyword, lookup

pytestmark = [
    pytest.mark.covers("CONTRACT-8-MESSAGING"),
    pytest.mark.capability("links", "gateway-list"),
]

NAME = "family"


@pytest.fixture
async def platform(evidence) -> AsyncIterator[Recorder]:
    """A messaging platform's webhook, which records what reaches it."""
    async with open_recorder("platform", evidence=evidence, rules=[Rule(path="/hook")]) as recorder:
        yield recorder


async def linked(connection: Connection) -> dict[object, object]:
    """Name → link of the links that the registry lists."""
    answer = await ask(connection, request("GATEWAY", "LIST"))
    rows = answer.get("PAYLOAD", "LINKS") or ()

    assert isinstance(rows, tuple), f"contract 8: :LINKS is a list: {answer.payload}"
    return {lookup(row, "NAME"): row for row in rows}


async def link(connection: Connection, name: str = NAME, **properties: str) -> None:
    """Link an address and see it acknowledged and listed."""
    form = request("GATEWAY", "LINK", name=name, platform="telegram", address="42", **properties)
    answer = await ask(connection, form)

    sensor = answer.get("PAYLOAD", "SENSOR")
    assert Keyword("GATEWAY-LINKED") == sensor, f"a link is acknowledged, not by {answer.payload}"
    found = await linked(connection)

    assert name in found, f"contract 8: linked, and not listed: {sorted(map(str, found))}"
    shown = (lookup(found[name], "PLATFORM"), lookup(found[name], "ADDRESS"))
    assert ("telegram", "42") == shown, f"a link is listed as it was made: found {shown}"


async def unlink(connection: Connection, name: str = NAME) -> None:
    """Unlink an address and see it acknowledged and gone."""
    answer = await ask(connection, request("GATEWAY", "UNLINK", name=name))

    sensor = answer.get("PAYLOAD", "SENSOR")
    assert Keyword("GATEWAY-UNLINKED") == sensor, (
        f"an unlinking is acknowledged, not by {answer.payload}"
    )
    assert name not in await linked(connection), "contract 8: unlinked, and still listed"


async def test_link_and_unlink(client, token: str) -> None:
    """A linked address is listed on every connection, an unlinked one on none."""
    before = await linked(client)
    await link(client, token)
    await unlink(client, token)

    after = await linked(client)
    assert before == after, (
        f"contract 8: the list of links is what it was: expected {before}, found {after}"
    )


async def test_a_name_is_a_name(client, token: str) -> None:
    """Unlinking a name leaves a link alone whose name begins with it, or ends with it."""
    others = {f"{token}x", f"x{token}", f"{token}.{token}"}
    for name in (token, *others):
        await link(client, name)
    await unlink(client, token)
    left = await linked(client)
    lost = sorted(others - left.keys())

    assert [] == lost, f"contract 8: {token} was unlinked, and {', '.join(lost)} with it"
    for name in others:
        await unlink(client, name)


async def test_links_outlive_a_restart(start, token: str) -> None:
    """What is linked is linked after a restart; what was unlinked before it is not back after."""
    async with start() as daemon:
        async with daemon.connect() as connection:
            await link(connection, "stays")
            await link(connection, "goes")
            await unlink(connection, "goes")
        await daemon.restart()
        async with daemon.connect() as connection:
            after = await linked(connection)

            assert "stays" in after, "contract 8: a link is gone after a restart"
            assert "goes" not in after, "contract 8: an unlinked address is back after a restart"
            await unlink(connection, "stays")
        daemon.kill()
        await daemon.child.wait()
        await daemon.restart()
        async with daemon.connect() as connection:
            assert {} == await linked(connection), "contract 8: an unlink did not survive a crash"


async def test_sending_reaches_the_platform(
    daemon: Daemon, client, platform: Recorder, token: str
) -> None:
    """What is sent to a linked address is posted to its webhook, once and whole."""
    await link(client, token, webhook=f"{platform.url}/hook")
    text = f"naïve 日本 😀 {token}"
    answer = await ask(client, request("GATEWAY", "SEND", name=token, text=text))

    sensor, status = answer.get("PAYLOAD", "SENSOR"), answer.get("PAYLOAD", "STATUS")
    assert Keyword("GATEWAY-SENT") == sensor, f"a sending is acknowledged, not by {answer.payload}"
    assert 200 == status, f"the platform's own status is reported: expected 200, found {status}"
    requests = platform.matching("/hook", method="POST")

    shown = [f"{request.method} {request.path}" for request in requests]
    assert 1 == len(requests), f"contract 8: a message is posted once, found {shown}"
    assert token in requests[0].text, f"the message is posted whole: {requests[0].text!r}"
    posted = (requests[0].text, requests[0].body.decode("unicode_escape"))
    assert any("日本" in each for each in posted), f"letters are posted as they are: {posted[0]!r}"
    await unlink(client, token)


@pytest.mark.parametrize(
    "answer",
    [Answer(status=401), Answer(status=500), Answer(drop="unanswered")],
    ids=["wrong-token", "broken", "hangs-up"],
)
async def test_a_platform_in_trouble_is_reported(
    daemon: Daemon, client, evidence, token: str, answer: Answer
) -> None:
    """What the platform did not take is not reported as sent."""
    async with open_recorder(
        "trouble", evidence=evidence, rules=[Rule(path="/hook", answer=answer)]
    ) as platform:
        await link(client, token, webhook=f"{platform.url}/hook")
        outcome = await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))

        assert 1 <= len(platform.requests), "nothing was tried"
        expect_refusal(outcome, client)
        await unlink(client, token)


async def test_an_unlinked_address_is_not_written_to(
    client, platform: Recorder, token: str
) -> None:
    """After unlink nothing more goes out, and the refusal says why."""
    await link(client, token, webhook=f"{platform.url}/hook")
    await unlink(client, token)
    outcome = await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))

    expect_refusal(outcome, client, "link", token.lower())

    assert () == platform.requests, (
        f"contract 8: an unlinked address gets nothing, and it got {platform.requests}"
    )


async def test_only_the_linked_are_heard(client, token: str) -> None:
    """Text of a messaging address is answered while it is linked, and refused before and after."""
    message = user_input("ping", source="MESSAGING", link=token)
    expect_refusal(await ask(client, message), client, "link")
    await link(client, token)
    answer = await ask(client, message)

    expect_message(answer, client)

    assert token == answer.get("META", "LINK"), f"whose answer is {answer.payload}?"
    await unlink(client, token)
    expect_refusal(await ask(client, message), client, "link")


INCOMPLETE = {
    "no-name": {"platform": "telegram", "address": "42"},
    "no-address": {"name": "half", "platform": "telegram"},
    "empty-name": {"name": "", "platform": "telegram", "address": "42"},
    "no-url": {"name": "half", "platform": "telegram", "address": "42", "webhook": "nowhere"},
    "a-file": {
        "name": "half",
        "platform": "telegram",
        "address": "42",
        "webhook": "file:///etc/passwd",
    },
}


@pytest.mark.parametrize("properties", INCOMPLETE.values(), ids=INCOMPLETE)
async def test_an_incomplete_link_is_refused(
    daemon: Daemon, client, properties: dict[str, str]
) -> None:
    """A link that lacks something, or leads nowhere, is refused and not listed."""
    before = await linked(client)
    refusal = await ask(client, request("GATEWAY", "LINK", **properties))

    expect_refusal(refusal, client)

    after = await linked(client)
    assert before == after, (
        f"contract 8: the list of links is what it was: expected {before}, found {after}"
    )
    expect_health(await daemon.health())


async def test_unlinking_the_unknown_is_refused(client, token: str) -> None:
    """What was never linked cannot be unlinked; the refusal changes nothing."""
    before = await linked(client)
    refusal = await ask(client, request("GATEWAY", "UNLINK", name=token))

    expect_refusal(refusal, client)

    after = await linked(client)
    assert before == after, (
        f"contract 8: the list of links is what it was: expected {before}, found {after}"
    )
