"""Contract 8, messaging: many links beside each other, links that are refused, links that cannot be read.

A recorder is a stand-in for the messaging platform.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio

from harness_core.doubles.http import Rule, open_recorder
from suites.daemon.daemon import Daemon
from suites.daemon.messages import (
    ask,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    user_input,
)
from suites.daemon.vitals import settled
from suites.daemon.wire import Connection, Form, Keyword, lookup

pytestmark = [
    pytest.mark.covers("CONTRACT-8-MESSAGING"),
    pytest.mark.capability("links", "gateway-list"),
]

#: Until the sockets of what was sent are closed.
SETTLE_S = 10.0


async def rows(connection: Connection) -> dict[str, tuple[object, object]]:
    """Name → platform and address of the links that are listed."""
    answer = await ask(connection, request("GATEWAY", "LIST"))
    found = answer.get("PAYLOAD", "LINKS") or ()

    assert isinstance(found, tuple), f"contract 8: the links are a list, found {answer.payload}"
    return {
        str(lookup(row, "NAME")): (lookup(row, "PLATFORM"), lookup(row, "ADDRESS")) for row in found
    }


async def make(connection: Connection, **properties: str) -> None:
    """Link an address; the acknowledgement shows what was linked."""
    answer = await ask(connection, request("GATEWAY", "LINK", **properties))

    assert answer.get("TYPE") != Keyword("LOG"), (
        f"contract 8: linking {properties['name']} is refused: {answer.payload}"
    )
    lost = [properties[key] for key in ("name", "address") if properties[key] not in answer.payload]

    assert not lost, (
        f"contract 8: a link is acknowledged by its own name and address: expected {lost} in "
        f"{answer.payload}"
    )


async def drop(connection: Connection, *names: str) -> None:
    """Unlink names; each acknowledgement names what was unlinked."""
    for name in names:
        answer = await ask(connection, request("GATEWAY", "UNLINK", name=name))

        assert answer.get("TYPE") != Keyword("LOG"), (
            f"contract 8: unlinking {name} is refused: {answer.payload}"
        )
        assert name in answer.payload, (
            f"contract 8: an unlink is acknowledged by its name: expected {name} in {answer.payload}"
        )


#: Links beside each other, and texts to each.
LINKS = 6
TURNS = 4


async def test_each_text_goes_to_its_own_link(daemon: Daemon, evidence, token: str) -> None:
    """Of many links each gets what is sent to it, one after the other and all at once, and no other's.

    What was sent leaves nothing open; each link is listed with what it was given.
    """
    platforms = ("telegram", "signal", "matrix", "slack", "discord")
    links = {
        f"{token}-{number}": (platforms[number % 5], f"address-{number}-{token[::-1]}")
        for number in range(LINKS)
    }
    order = list(links)
    random.Random(token).shuffle(order)
    expected = {name: sorted(f"<{name} {turn}>" for turn in range(TURNS)) for name in links}
    async with open_recorder("many", evidence=evidence, rules=[Rule(path="/**")]) as platform:
        async with daemon.connect() as connection:
            for name, (kind, address) in links.items():
                hook = f"{platform.url}/{name}"
                await make(connection, name=name, platform=kind, address=address, webhook=hook)
            listed = await rows(connection)
            found = {name: listed.get(name) for name in links}

            assert found == links, (
                f"contract 8: each link is listed with its own platform and address: expected "
                f"{links}, found {found}"
            )
            before = daemon.vitals()

            async def send(connection: Connection, name: str, turn: int) -> None:
                form = request("GATEWAY", "SEND", name=name, text=f"<{name} {turn}>")
                answer = await ask(connection, form)

                assert answer.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-SENT"), (
                    f"contract 8: a text to {name} is sent, found {answer.payload}"
                )
                others = [other for other in links if other != name and other in answer.payload]

                assert not others, (
                    f"contract 8: what was sent to {name} is acknowledged as that, found "
                    f"{answer.payload}"
                )

            async def alone(name: str, turn: int) -> None:
                async with daemon.connect() as own:
                    await send(own, name, turn)

            for turn in range(TURNS - 1):
                for name in order[turn:] + order[:turn]:
                    await send(connection, name, turn)
            async with trio.open_nursery() as nursery:
                for name in order:
                    nursery.start_soon(alone, name, TURNS - 1)
            await settled(daemon.pid, descriptors=before.descriptors, seconds=SETTLE_S)
            await drop(connection, *order)
        posted = [(each.path.strip("/"), str(each.json())) for each in platform.requests]
    texts = {
        name: sorted(
            f"<{other} {turn}>"
            for path, body in posted
            if path == name
            for other in links
            for turn in range(TURNS)
            if f"<{other} {turn}>" in body
        )
        for name in links
    }

    assert texts == expected, (
        f"contract 8: each link's webhook gets the texts of that link alone, once: expected "
        f"{expected}, found {texts}"
    )
    mixed = [
        f"{path} got {address}"
        for path, body in posted
        for name, (_, address) in links.items()
        if address in body and name != path
    ]

    assert not mixed, f"contract 8: a text bears no address of another link, found {mixed[:3]}"


#: What platforms call those who talk there: chats of people and of groups, numbers, rooms, names; and what
#: looks like something else.
ADDRESSES = (
    *(
        "-1001234567890",
        "--7",
        "+49 30 123456",
        "@ann",
        "#general",
        "!room:example.org",
        "*",
        "~ann",
    ),
    *("ann@example.org/home", "team/7?x=1&y=%41", "ANN", "a b", "007", "1e5"),
    *(
        "0x1F",
        "-0",
        "NIL",
        "T",
        ":KEY",
        "(1 2)",
        "null",
        "true",
        "é日😀",
        "{text}",
        "$HOME",
        "..",
        "-",
    ),
)


async def test_an_address_is_linked_as_it_is_written(client, evidence, token: str) -> None:
    """An address is listed and written to letter by letter, whatever it looks like; or it is refused."""
    async with open_recorder("odd", evidence=evidence, rules=[Rule(path="/hook")]) as platform:
        hook = f"{platform.url}/hook"
        for address in ADDRESSES:
            sound = {"name": token, "platform": "telegram", "webhook": hook}
            answer = await ask(client, request("GATEWAY", "LINK", **sound, address=address))
            if answer.get("TYPE") == Keyword("LOG"):
                expect_refusal(answer, client)
                continue
            known = (await rows(client)).get(token)

            assert known == ("telegram", address), (
                f"contract 8: the address {address!r} is linked as it is written, or refused: expected "
                f"it in the list, found {known}"
            )
            await ask(client, request("GATEWAY", "SEND", name=token, text="hello"))
            bodies = [each.json() for each in platform.requests[-1:]]

            assert any(address in body.values() for body in bodies), (
                f"contract 8: a text goes to the address {address!r} that was linked: expected it in "
                f"what the platform got, found {bodies}"
            )
        await drop(client, token)


#: What is wrong with a link, beside what is sound.
WRONG: dict[str, dict[str, Form]] = {
    "an empty address": {"address": ""},
    "an address that is a number": {"address": 42},
    "an unknown platform": {"platform": "carrier-pigeon"},
    "an empty platform": {"platform": ""},
    "a platform that is a keyword": {"platform": Keyword("TELEGRAM")},
    "a webhook that is a number": {"webhook": 9},
    "a webhook that is no address": {"webhook": "nowhere"},
    "a webhook of another scheme": {"webhook": "ftp://127.0.0.1/hook"},
    "a webhook without a host": {"webhook": "http:///hook"},
    "a webhook at no port": {"webhook": "http://127.0.0.1:99999/hook"},
}


async def test_a_link_that_is_refused_changes_none(client, evidence, token: str) -> None:
    """Whoever links a name again and is refused has what was linked before, and it works as before."""
    sound = {"name": token, "platform": "signal", "address": f"address-{token}"}
    async with open_recorder("before", evidence=evidence, rules=[Rule(path="/hook")]) as platform:
        await make(client, **sound, webhook=f"{platform.url}/hook")
        before = await rows(client)
        for number, (what, wrong) in enumerate(WRONG.items()):
            form = request("GATEWAY", "LINK", **({**sound, "address": "new"} | wrong))
            expect_refusal(await ask(client, form), client)
            found = await rows(client)

            assert found == before, (
                f"contract 8: a link with {what} is refused and changes nothing: expected "
                f"{before.get(token)} for {token}, found {found.get(token)}"
            )
            heard = user_input("ping", source="MESSAGING", link=token)
            expect_message(await ask(client, heard), client)
            await ask(client, request("GATEWAY", "SEND", name=token, text=f"<{number}>"))
            texts = [each.text for each in platform.requests][number:]

            assert [f"<{number}>" in text for text in texts] == [True], (
                f"contract 8: after a link with {what} was refused, texts go where they went: "
                f"expected one with <{number}> at the webhook, found {texts}"
            )
        for what, form in {
            "no text": request("GATEWAY", "SEND", name=token),
            "a number": request("GATEWAY", "SEND", name=token, text=7),
        }.items():
            expect_refusal(await ask(client, form), client)

            assert len(platform.requests) == len(WRONG), (
                f"contract 8: {what} is sent to nobody, found {platform.requests[-1].text!r}"
            )
        await drop(client, token)


async def test_links_that_cannot_be_read_are_no_empty_list(start, token: str) -> None:
    """Where what is linked cannot be read the daemon says so, and writes nothing over it.

    It may know its links without reading them. Once they can be read again they are as before.
    """
    async with start() as daemon, daemon.connect() as connection:
        names = [f"{token}-{number}" for number in range(3)]
        for name in names:
            await make(connection, name=name, platform="signal", address=f"at-{name}")
        before = await rows(connection)
        files = [
            file for file in holding(daemon.home, f"at-{names[0]}") if file != daemon.child.log
        ]
        held = {file: file.read_bytes() for file in files}
        for what, damage in (("cut", lambda raw: raw[: len(raw) // 2]), ("empty", lambda _: b"")):
            for file, raw in held.items():
                file.write_bytes(damage(raw))
            answer = await ask(connection, request("GATEWAY", "LIST"))
            if answer.get("TYPE") == Keyword("LOG"):
                expect_refusal(answer, connection)
            else:
                lost = [name for name in names if name not in answer.payload]

                assert not lost, (
                    f"contract 8: the file of the links is {what}: expected an error, or all of "
                    f"{names}, found a list without {lost}: {answer.payload}"
                )
            other = request(
                "GATEWAY", "LINK", name="other", platform="signal", address=f"other-{token}"
            )
            refused = (await ask(connection, other)).get("TYPE") == Keyword("LOG")
            expect_health(await daemon.health())
            if refused:
                for file, raw in held.items():
                    assert file.read_bytes() == damage(raw), (
                        f"contract 8: a link that is refused since the file of the links is {what} "
                        f"leaves the file as it is, found {file.read_bytes()[:200]!r}"
                    )
                    file.write_bytes(raw)
            found = await rows(connection)
            lost = [name for name in names if found.get(name) != before[name]]

            assert not lost, (
                f"contract 8: once the links can be read again they are as before: expected {before}, "
                f"found {found}"
            )
            if not refused:
                await drop(connection, "other")


def holding(home: Path, text: str) -> list[Path]:
    """The files below a home that hold a text."""
    return [
        path
        for path in sorted(home.rglob("*"))
        if path.is_file() and text in path.read_text(encoding="utf-8", errors="replace")
    ]
