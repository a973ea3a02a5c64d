"""Contract 8, messaging: an address is linked, spoken to and unlinked, and restarts remember which.

A recorder on loopback is a stand-in for the messaging platform: it shows what arrived there, and
answers, fails or hangs up as a test asks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness_core.base.evidence import Evidence
from harness_core.doubles.http import Answer, Recorded, Recorder, Rule, open_recorder
from harness_core.process import command_line
from suites.daemon.daemon import Daemon
from suites.daemon.messages import (
    ANSWER_S,
    ask,
    due,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    user_input,
)
from suites.daemon.vitals import below
from suites.daemon.wire import NIL, Connection, Form, Keyword, lookup

pytestmark = [
    pytest.mark.covers("CONTRACT-8-MESSAGING"),
    pytest.mark.capability("links", "gateway-list"),
]

NAME = "family"

#: Parts of a webhook that let in whoever knows them.
SECRETS = ("q8Zt41hookWv", "r2Kd77hookXy", "t5Lm93hookAb")


@pytest.fixture
async def platform(evidence) -> AsyncIterator[Recorder]:
    """A messaging platform's webhook, which records what reaches it."""
    async with open_recorder("platform", evidence=evidence, rules=[Rule(path="/hook")]) as recorder:
        yield recorder


async def linked(connection: Connection) -> dict[object, object]:
    """Name → link of the links that the registry lists."""
    answer = await ask(connection, request("GATEWAY", "LIST"))
    rows = answer.get("PAYLOAD", "LINKS") or ()

    assert isinstance(rows, tuple), f"contract 8: the links are a list, found {answer.payload}"
    return {lookup(row, "NAME"): row for row in rows}


async def link(connection: Connection, name: str = NAME, **properties: str) -> None:
    """Link an address and see it acknowledged and listed."""
    form = request("GATEWAY", "LINK", name=name, platform="telegram", address="42", **properties)
    answer = await ask(connection, form)

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-LINKED"), (
        "contract 8: a link is acknowledged: expected "
        + repr(Keyword("GATEWAY-LINKED"))
        + f", found {answer.payload}"
    )
    found = await linked(connection)

    assert name in found, f"contract 8: linked, and not listed: {sorted(map(str, found))}"
    assert "telegram" == lookup(found[name], "PLATFORM"), (
        f"contract 8: the platform of {name}: expected "
        + repr("telegram")
        + ", found "
        + repr(lookup(found[name], "PLATFORM"))
    )
    assert "42" == lookup(found[name], "ADDRESS"), (
        f"contract 8: the address of {name}: expected "
        + repr("42")
        + ", found "
        + repr(lookup(found[name], "ADDRESS"))
    )


async def unlink(connection: Connection, name: str = NAME) -> None:
    """Unlink an address and see it acknowledged and gone."""
    answer = await ask(connection, request("GATEWAY", "UNLINK", name=name))

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-UNLINKED"), (
        "contract 8: an unlink is acknowledged: expected "
        + repr(Keyword("GATEWAY-UNLINKED"))
        + f", found {answer.payload}"
    )
    assert name not in await linked(connection), "contract 8: unlinked, and still listed"


async def test_link_and_unlink(client, token: str) -> None:
    """A linked address is listed on every connection, an unlinked one on none."""
    before = await linked(client)
    await link(client, token)
    await unlink(client, token)

    found = await linked(client)

    assert before == found, (
        f"contract 8: the links are as before: expected {before!r}, found {found!r}"
    )


async def test_a_name_is_a_name(client, token: str) -> None:
    """Unlinking a name leaves a link alone whose name begins or ends with it, or is of other letters."""
    others = {f"{token}x", f"x{token}", f"{token}.{token}", token.upper(), token.capitalize()}
    for name in (token, token.upper()):
        await link(client, name)
        refusal = await ask(client, request("GATEWAY", "UNLINK", name=name.swapcase()))
        expect_refusal(refusal, client)
        assert name in await linked(client), (
            f"contract 8: {name.swapcase()} was never linked, and {name} went with it"
        )
        await unlink(client, name)
    for name in (token, *others):
        await link(client, name)
    await unlink(client, token)
    left = await linked(client)
    lost = sorted(others - left.keys())

    assert [] == lost, f"contract 8: {token} was unlinked, and {', '.join(lost)} with it"
    for name in others:
        await unlink(client, name)


async def test_links_outlive_a_restart(start, platform: Recorder, token: str) -> None:
    """What is linked is linked after a restart, all of it; what was unlinked before it is not back after."""
    async with start() as daemon:
        async with daemon.connect() as connection:
            await link(connection, "stays", webhook=f"{platform.url}/hook")
            await link(connection, "goes")
            await unlink(connection, "goes")
        await daemon.restart()
        async with daemon.connect() as connection:
            after = await linked(connection)

            assert "stays" in after, "contract 8: a link is gone after a restart"
            assert "goes" not in after, "contract 8: an unlinked address is back after a restart"
            message = user_input("ping", source="MESSAGING", link="stays")
            expect_message(await ask(connection, message), connection)
            form = request("GATEWAY", "SEND", name="stays", text=f"still {token}")
            sent = await ask(connection, form)

            assert sent.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-SENT"), (
                f"contract 8: after a restart a text is sent as before, found {sent.payload}"
            )
            texts = [each.text for each in platform.matching("/hook", method="POST")]

            assert [True] == [token in text for text in texts], (
                f"contract 8: after a restart a text goes to the webhook that was linked before: "
                f"expected one request with {token!r}, found {texts}"
            )
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

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-SENT"), (
        "contract 8: what was sent is acknowledged: expected "
        + repr(Keyword("GATEWAY-SENT"))
        + f", found {answer.payload}"
    )
    assert 200 == answer.get("PAYLOAD", "STATUS"), (
        "contract 8: the status of the platform: expected "
        + repr(200)
        + ", found "
        + repr(answer.get("PAYLOAD", "STATUS"))
    )
    requests = platform.matching("/hook", method="POST")

    assert 1 == len(requests), (
        f"contract 8: requests to the platform, {[(r.method, r.path) for r in requests]}: expected {1!r}, "
        f"found {len(requests)!r}"
    )
    assert token in requests[0].text, (
        f"contract 8: the platform gets the whole text, found {requests[0].text!r}"
    )
    assert "日本" in requests[0].body.decode("unicode_escape") or "日本" in requests[0].text, (
        f"contract 8: the platform gets the text's characters, found {requests[0].text!r}"
    )
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


#: What sending may take where a platform takes the connection and says nothing.
SILENT_S = 20.0


async def test_a_platform_that_says_nothing_is_given_up(
    daemon: Daemon, client, evidence, token: str
) -> None:
    """A text that a platform takes and never answers is reported as not sent; others are answered meanwhile.

    What makes its webhook a secret is then in no frame and no log.
    """
    user, path, query = (f"{secret}silent" for secret in SECRETS)
    rules = [Rule(path=f"/{path}", answer=Answer(drop="silent"))]
    async with open_recorder("silent", evidence=evidence, rules=rules) as platform:
        webhook = f"http://u:{user}@127.0.0.1:{platform.port}/{path}?token={query}"
        await link(client, token, webhook=webhook)
        await client.send(request("GATEWAY", "SEND", name=token, text="hello"))
        async with daemon.connect() as other:
            for _ in range(3):
                expect_message(await ask(other, user_input("ping")), other)
                expect_health(await daemon.health())
        outcome = await client.receive("what became of the text", seconds=SILENT_S)

        assert len(platform.requests) >= 1, "contract 8: the text was tried to be sent"
        expect_refusal(outcome, client)
        await unlink(client, token)
    log = daemon.child.log.read_text(encoding="utf-8", errors="replace")
    leaked = [
        f"{secret} in {where}"
        for where, text in {outcome.payload[:300]: outcome.payload, "its log": log}.items()
        for secret in (user, path, query)
        if secret in text
    ]

    assert not leaked, (
        f"contract 8: what makes a silent platform's webhook a secret is shown nowhere: found {leaked}"
    )


#: Statuses by which a platform takes a text, and those by which it does not.
TAKEN = (200, 201, 202, 203, 204, 206, 226, 299)
NOT_TAKEN = (
    *(300, 301, 302, 303, 304, 305, 307, 308, 399),
    *(400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 413, 418, 422, 425, 429, 451, 499),
    *(500, 501, 502, 503, 504, 507, 511, 529, 599),
)


async def test_what_a_platform_took_is_sent_and_nothing_else(client, evidence, token: str) -> None:
    """A text is reported as sent where the platform says so, with its status, and nowhere else.

    Each text is posted once, with what it says and whom it is for, and never to another place.
    """
    status = 0

    def answer(_request: Recorded) -> Answer:
        moved = 300 <= status < 400
        return Answer(status=status, headers={"Location": "/elsewhere"} if moved else {})

    rules = [Rule(path="/hook", method="POST", answer=answer), Rule(path="/elsewhere")]
    wrong: list[str] = []
    async with open_recorder("statuses", evidence=evidence, rules=rules) as platform:
        await link(client, token, webhook=f"{platform.url}/hook")
        # Trouble with one text is nothing to the next: each after another that went otherwise.
        pairs = zip(NOT_TAKEN, TAKEN * len(NOT_TAKEN), strict=False)
        for number, status in enumerate(each for pair in pairs for each in pair):
            text = f"  {number} {token}\nnaïve 日本 "
            outcome = await ask(client, request("GATEWAY", "SEND", name=token, text=text))
            sent = outcome.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-SENT")
            if sent != (status in TAKEN) or (sent and outcome.get("PAYLOAD", "STATUS") != status):
                wrong.append(f"{status}: {outcome.payload}")
            if not sent:
                expect_refusal(outcome, client)
            posted = [each for each in platform.requests if f"{number} {token}" in each.text]
            found = [(each.method, each.path) for each in posted]

            assert found == [("POST", "/hook")], (
                f"contract 8: a text is posted once to its webhook: expected one POST to /hook, found "
                f"{found} (the platform answers {status})"
            )
            try:
                body = posted[0].json()
            except ValueError:
                body = posted[0].text
            values = list(body.values()) if isinstance(body, dict) else [body]

            assert any(text in str(each) for each in values), (
                f"contract 8: the platform gets the text with its blanks and lines: expected {text!r}, "
                f"found {values}"
            )
        elsewhere = [each.target for each in platform.matching("/elsewhere")]
        await unlink(client, token)

    assert not wrong, (
        f"contract 8: a text is sent where the platform took it, {TAKEN}; found otherwise: {wrong}"
    )
    assert not elsewhere, (
        f"contract 8: a text goes to the webhook of its link alone, found it at {elsewhere}"
    )


#: Characters of a text that is sent: around what platforms and buffers take at once.
LENGTHS = (0, 1, 139, 281, 1_601, 2_001, 4_095, 4_096, 4_097, 16_385, 65_537, 200_001)


async def test_a_text_of_any_length_is_sent_whole(client, platform: Recorder, token: str) -> None:
    """A text reaches the platform to its last character, or is refused and does not reach it at all."""
    await link(client, token, webhook=f"{platform.url}/hook")
    for letter in "x日😀":
        for length in LENGTHS:
            if length > 65_537 and letter != "x":
                continue
            text = letter * (length - 1) + "." * (length > 0)
            before = len(platform.requests)
            outcome = await ask(client, request("GATEWAY", "SEND", name=token, text=text))
            posted = [each.json() for each in platform.requests[before:]]
            if outcome.get("TYPE") == Keyword("LOG"):
                expect_refusal(outcome, client)
                expected = 0
            else:
                expected = 1
            values = [
                [str(value) for value in body.values()] if isinstance(body, dict) else [str(body)]
                for body in posted
            ]

            assert len(posted) == expected, (
                f"contract 8: a text of {length} characters {letter} is posted once where it is said to "
                f"be sent, else not: expected {expected} requests, found {len(posted)}: "
                f"{outcome.payload[:200]}"
            )
            assert all(text in each for each in values), (
                f"contract 8: the platform gets a text of {length} characters {letter} whole, found texts "
                f"of {[[len(value) for value in each] for each in values]}"
            )
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
        f"contract 8: an unlinked address is written to: expected {()!r}, "
        f"found {platform.requests!r}"
    )


async def test_only_the_linked_are_heard(daemon: Daemon, client, token: str) -> None:
    """Text of a messaging address is answered while it is linked, and refused before and after."""
    message = user_input("ping", source="MESSAGING", link=token)
    expect_refusal(await ask(client, message), client, "link")
    await link(client, token)
    answer = await ask(client, message)

    expect_message(answer, client)

    assert token == answer.get("META", "LINK"), f"whose answer is {answer.payload}?"
    # Another's name is another's, however like it is.
    for other in (token.swapcase(), token[:-1], token[1:], f"{token}x", f"{token}."):
        stranger = user_input("ping", source="MESSAGING", link=other)
        expect_refusal(await ask(client, stranger), client, "link")
    await unlink(client, token)
    expect_refusal(await ask(client, message), client, "link")
    # Linked, unlinked and linked again: the last counts, on every connection.
    await link(client, token)
    async with daemon.connect() as elsewhere:
        expect_message(await ask(elsewhere, message), elsewhere)
        await unlink(elsewhere, token)
    expect_refusal(await ask(client, message), client, "link")


#: What languages write where there is no value.
NOTHING = ("None", "nil", "NIL", "null", "undefined", "false", "0", "UNKNOWN")


async def test_text_of_no_link_is_not_heard(client) -> None:
    """Text from messaging that names no link is refused, whatever the links are called.

    A daemon may refuse such names.
    """
    for name in NOTHING:
        await ask(client, request("GATEWAY", "LINK", name=name, platform="telegram", address="42"))
    allowed = (await linked(client)).keys() & set(NOTHING)
    empty: list[dict[str, Form]] = [{}, {"link": NIL}, {"link": ""}]
    for meta in empty:
        refusal = await ask(client, user_input("ping", source="MESSAGING", **meta))

        expect_refusal(refusal, client, "link")
    for name in NOTHING:
        if name in allowed:
            await unlink(client, name)


async def test_linking_again_means_the_last(client, platform: Recorder, token: str) -> None:
    """A name that is linked again has what the last link gave it, and nothing of those before."""
    await link(client, token, webhook=f"{platform.url}/hook")
    await link(client, token)
    outcome = await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))

    expect_refusal(outcome, client)

    assert () == platform.requests, (
        "contract 8: a link that was made again without a webhook is not written to: expected no "
        f"request to the webhook of the one before, found {platform.requests!r}"
    )
    await link(client, token, webhook=f"{platform.url}/nowhere")
    await link(client, token, webhook=f"{platform.url}/hook")
    await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))
    found = [each.path for each in platform.requests]

    assert ["/hook"] == found, (
        f"contract 8: a text goes to the webhook of the last link: expected ['/hook'], found {found}"
    )
    await unlink(client, token)
    await link(client, token)
    outcome = await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))

    expect_refusal(outcome, client)

    assert len(platform.requests) == 1, (
        "contract 8: a link that was unlinked and made again has nothing of the one before: expected no "
        f"request to its webhook, found {[each.path for each in platform.requests][1:]}"
    )
    form = request("GATEWAY", "LINK", name=token, platform="signal", address="another 日本")
    await ask(client, form)
    row = (await linked(client)).get(token)
    last = row and (lookup(row, "PLATFORM"), lookup(row, "ADDRESS"))

    assert last == ("signal", "another 日本"), (
        f"contract 8: a link is listed as it was made last: expected signal and another 日本, found {last}"
    )
    await unlink(client, token)


async def test_each_change_of_a_moment_is_the_last(
    daemon: Daemon, client, platform: Recorder, token: str
) -> None:
    """Changes that follow each other at once, none longer or shorter than the other, each count.

    Made on one connection, each is seen on another.
    """
    platforms = ("signal", "matrix", "signal", "telegram")
    async with daemon.connect() as elsewhere:
        for number in range(24):
            address, hook = f"address-{number:02}", f"hook-{number:02}"
            form = request(
                "GATEWAY",
                "LINK",
                name=token,
                platform=platforms[number % 4],
                address=address,
                webhook=f"{platform.url}/{hook}",
            )
            await ask(client if number % 3 else elsewhere, form)
            row = (await linked(elsewhere if number % 3 else client)).get(token)
            last = row and (lookup(row, "PLATFORM"), lookup(row, "ADDRESS"))

            assert last == (platforms[number % 4], address), (
                f"contract 8: a link is what it was made last: expected {platforms[number % 4]} and "
                f"{address}, found {last}"
            )
            await ask(elsewhere, request("GATEWAY", "SEND", name=token, text="hello"))
            paths = [each.path for each in platform.requests][number:]

            assert paths == [f"/{hook}"], (
                f"contract 8: a text goes to the webhook that was linked last: expected /{hook}, found "
                f"{paths}"
            )
            body = str(platform.requests[number].json())
            assert address in body, (
                f"contract 8: a text is for the address that was linked last: expected {address}, found {body}"
            )
        for number in range(6):
            one, other = f"{token}-{number}", f"{token}+{number}".replace("+", ".")
            await link(client, one)
            await unlink(elsewhere, one)
            await link(client, other)
            names = (await linked(elsewhere)).keys() & {one, other}

            assert names == {other}, f"contract 8: expected the link {other} alone, found {names}"
            await unlink(client, other)
        await unlink(client, token)


async def test_a_webhook_is_kept_to_the_daemon(start, evidence) -> None:
    """What makes a webhook a secret is in no frame, log, error or argv, and in no file others read."""
    user, path, query = SECRETS
    rules = [Rule(path=f"/{path}"), Rule(path=f"/{path}/full", answer=Answer(status=500))]
    async with (
        open_recorder("platform", evidence=evidence, rules=rules) as platform,
        start() as daemon,
        daemon.connect() as connection,
    ):
        place = f"{user}@127.0.0.1:{platform.port}/{path}"
        webhooks = {
            "well": f"http://u:{place}?token={query}",
            "full": f"http://u:{place}/full?token={query}",
            "away": f"http://u:{user}@127.0.0.1:1/{path}?token={query}",
            "other": f"ftp://u:{place}?token={query}",
            "nowhere": f"http://u:{user}@/{path}?token={query}",
            "port": f"http://u:{user}@127.0.0.1:99999/{path}?token={query}",
            "lines": f"http://u:{place}?token={query}\n{path}",
        }
        said: dict[str, str] = {}
        for name, webhook in webhooks.items():
            form = request(
                "GATEWAY", "LINK", name=name, platform="slack", address="42", webhook=webhook
            )
            said[f"the answer to linking {name}"] = (await ask(connection, form)).payload
            send = request("GATEWAY", "SEND", name=name, text="hello")
            said[f"the answer to sending by {name}"] = (await ask(connection, send)).payload
        said["the list"] = (await ask(connection, request("GATEWAY", "LIST"))).payload

        assert [path] == [each.path.strip("/") for each in platform.requests][:1], (
            "contract 8: the text reaches a webhook with a token in it: expected a request, found "
            f"{said}"
        )
        # Others may read a file of which they know the name, or what it is called for a moment.
        open_to_others = [
            str(file)
            for file in daemon.home.rglob("*")
            if file.is_file()
            and file.stat().st_mode & 0o077
            and all(
                above.stat().st_mode & 0o011
                for above in file.parents
                if above.is_relative_to(daemon.home)
            )
            and any(secret in file.read_text(errors="replace") for secret in SECRETS)
        ]
        for name in webhooks:
            form = request("GATEWAY", "UNLINK", name=name)
            said[f"the answer to unlinking {name}"] = (await ask(connection, form)).payload
        said["its log"] = daemon.child.log.read_text(encoding="utf-8", errors="replace")
        for pid in (daemon.pid, *below(daemon.pid)):
            said[f"the command line of {pid}"] = " ".join(command_line(pid))
    leaked = [
        f"{secret} in {where}: {text[:300]}"
        for where, text in said.items()
        for secret in SECRETS
        if secret in text
    ]

    assert not leaked, f"contract 8: what makes a webhook a secret is shown nowhere: found {leaked}"
    assert not open_to_others, (
        "contract 8: what makes a webhook a secret is in no file that others may read: expected "
        f"none, found {open_to_others}"
    )


INCOMPLETE = {
    "no-name": {"platform": "telegram", "address": "42"},
    "no-address": {"name": "half", "platform": "telegram"},
    "empty-name": {"name": "", "platform": "telegram", "address": "42"},
    "no-url": {"name": "half", "platform": "telegram", "address": "42", "webhook": "nowhere"},
    "another-scheme": {
        "name": "half",
        "platform": "telegram",
        "address": "42",
        "webhook": "ftp://127.0.0.1/hook",
    },
    "no-host": {
        "name": "half",
        "platform": "telegram",
        "address": "42",
        "webhook": "http:///hook",
    },
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

    found = await linked(client)

    assert before == found, (
        f"contract 8: the links are as before: expected {before!r}, found {found!r}"
    )
    expect_health(await daemon.health())


async def test_unlinking_the_unknown_is_refused(client, token: str) -> None:
    """What was never linked cannot be unlinked; the refusal changes nothing."""
    before = await linked(client)
    refusal = await ask(client, request("GATEWAY", "UNLINK", name=token))

    expect_refusal(refusal, client)

    found = await linked(client)

    assert before == found, (
        f"contract 8: the links are as before: expected {before!r}, found {found!r}"
    )


@pytest.mark.covers("CONTRACT-2-INPUT")
@pytest.mark.parametrize("eof", [False, True], ids=["open", "half-closed"])
async def test_what_is_sent_is_not_overtaken(
    client: Connection, evidence: Evidence, token: str, *, eof: bool
) -> None:
    """What is asked behind a text that a platform takes slowly is answered behind it."""
    rules = [Rule(path="/hook", answer=Answer(latency_s=0.5))]
    async with open_recorder("slow", evidence=evidence, rules=rules) as platform:
        await link(client, token, webhook=f"{platform.url}/hook")
        await client.send(request("GATEWAY", "SEND", name=token, text="hello"))
        await client.send(request("GATEWAY", "UNLINK", name=token))
        if eof:
            await client.send_eof()
        answers = [
            await due(client, f"answer {number} of two", seconds=ANSWER_S) for number in (1, 2)
        ]
    found = [str(each.get("PAYLOAD", "SENSOR")) for each in answers]
    assert [":GATEWAY-SENT", ":GATEWAY-UNLINKED"] == found, (
        f"contract 2: answers follow their requests, found {found}\n{client.transcript}"
    )
