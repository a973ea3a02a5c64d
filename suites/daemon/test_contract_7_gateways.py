"""Contract 7: the gateway registry is initialised after start and lists its gateways."""

from __future__ import annotations

import pytest

from suites.daemon.daemon import Daemon
from suites.daemon.lists import listed
from suites.daemon.messages import (
    ask,
    expect_message,
    expect_refusal,
    request,
    sources_of,
    user_input,
)
from suites.daemon.wire import Keyword, lookup

pytestmark = pytest.mark.covers("CONTRACT-7-GATEWAYS")

#: The rows of the list, over the wire.
on_the_wire = pytest.mark.capability("gateway-list")


async def gateways(connection) -> list:
    """The list of gateways, each a property list."""
    answer = await ask(connection, request("GATEWAY", "LIST"))

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("GATEWAY-LIST"), (
        "contract 7: the registry lists its gateways: expected "
        + repr(Keyword("GATEWAY-LIST"))
        + f", found {answer.payload}"
    )
    listed = answer.get("PAYLOAD", "GATEWAYS")

    assert isinstance(listed, tuple), f"no list of :GATEWAYS: {answer.payload}"
    return list(listed)


async def test_registry_is_filled(daemon: Daemon, run) -> None:
    """Right after the handshake the registry lists gateways, each by a name of its own."""
    names = [row["name"] for row in await listed(daemon, run, "gateways")]

    assert names, "contract 7: the gateway registry is empty after start"
    assert all(isinstance(name, str) and name for name in names), (
        f"contract 7: each gateway has a name, found {names}"
    )
    assert len(names) == len(set(names)), f"a gateway is listed twice: {names}"


@pytest.mark.capability("cli-source")
async def test_the_cli_gateway_is_listed(daemon: Daemon, run) -> None:
    """The gateway of contract 6 is among them: a source of that list is :CLI."""
    sources = [row.get("source") for row in await listed(daemon, run, "gateways")]

    assert "CLI" in sources, f"contract 7: no gateway of source :CLI in {sources}"


@on_the_wire
async def test_a_gateway_is_listed_with_its_own_source(client) -> None:
    """A gateway that is called like a source of the list has that source, and each source is one's own."""
    listed = [
        (str(lookup(row, "NAME")), str(lookup(row, "SOURCE")).lstrip(":"))
        for row in await gateways(client)
    ]
    sources = [source for _, source in listed]
    mixed = [row for row in listed if row[0].upper() in sources and row[0].upper() != row[1]]

    assert not mixed, f"contract 7: a gateway is listed with the source of another: found {mixed}"


async def test_every_listed_source_is_heard(daemon: Daemon, client, run) -> None:
    """The list is true: text from each source it names, but linked messaging, is answered."""
    sources = {
        str(row["source"]) for row in await listed(daemon, run, "gateways") if "source" in row
    }
    spoken = sorted(sources - {"MESSAGING"})

    assert spoken, "only messaging is listed"
    for source in spoken:
        answer = await ask(client, user_input("ping", source=source))

        assert expect_message(answer, client).strip(), (
            f"contract 7: text from {source} is answered, found {answer.payload}"
        )


async def test_every_source_that_is_heard_is_listed(daemon: Daemon, client, run, subject) -> None:
    """The list is whole: each source whose text is answered as its own has a gateway in it."""
    rows = await listed(daemon, run, "gateways")
    sources = [row["source"] for row in rows if "source" in row]
    for source in sources_of(subject):
        answer = await ask(client, user_input("ping", source=source))
        expect_message(answer, client)

        assert source in sources or len(sources) < len(rows), (
            f"contract 7: the registry lists its gateways: text from {source} is answered, expected a "
            f"gateway of that source, found {sources}"
        )


@on_the_wire
async def test_the_list_is_the_same_for_everyone(daemon: Daemon) -> None:
    """The registry belongs to the daemon, not to a connection."""
    async with daemon.connect() as one, daemon.connect() as two:
        first, second = await gateways(one), await gateways(two)

    assert first == second, (
        f"contract 7: two clients read the same list: expected {first!r}, found {second!r}"
    )


@on_the_wire
@pytest.mark.capability("links")
async def test_the_list_is_whole_from_the_start(start, token: str) -> None:
    """What is linked and unlinked is another list: the gateways are the same before, meanwhile and after."""
    async with start() as daemon, daemon.connect() as connection:
        lists = [await gateways(connection)]
        for action, more in (("LINK", {"platform": "signal", "address": "7"}), ("UNLINK", {})):
            answer = await ask(connection, request("GATEWAY", action, name=token, **more))
            assert answer.get("TYPE") != Keyword("LOG"), (
                f"contract 8: {action} of {token} is refused: {answer.payload}"
            )
            lists.append(await gateways(connection))
        await daemon.restart()
        async with daemon.connect() as again:
            lists.append(await gateways(again))

    named = [sorted(str(lookup(row, "NAME")) for row in each) for each in lists]
    assert all(each == named[0] for each in named), (
        f"contract 7: expected the same gateways before a link, with it, after it and after a "
        f"restart, found {named}"
    )


@on_the_wire
@pytest.mark.capability("error-frames")
async def test_an_unknown_action_is_refused(client) -> None:
    """An action that the registry does not know is named in an error, and changes nothing."""
    before = await gateways(client)
    refusal = await ask(client, request("GATEWAY", "EXPLODE"))

    expect_refusal(refusal, client, "explode", "action")

    found = await gateways(client)

    assert before == found, (
        f"contract 7: an unknown action changes nothing: expected {before!r}, found {found!r}"
    )
