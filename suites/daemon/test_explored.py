"""Connections, links and shell commands by steps that are generated, held to small models of their own."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from harness_core.assertions.exploring import Explore, Machine
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.hostile import END_S
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    HEARTBEAT,
    ask,
    due,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    shell,
    user_input,
)
from suites.daemon.shell_grammar import combined
from suites.daemon.spelling import TEXTS
from suites.daemon.test_contract_5_grammar import Grove, refused
from suites.daemon.vitals import settled
from suites.daemon.wire import (
    Connection,
    Form,
    Keyword,
    Message,
    encode_frame,
    lookup,
    plist,
    print_form,
)

pytestmark = [
    pytest.mark.explore,
    pytest.mark.aside("generated steps; what they find becomes a test or a row of a contract"),
]

#: Clients at once, of whom each is known by its number.
CLIENTS = st.integers(0, 3)

NAMES = st.sampled_from(["ann", "anna", "ann.a", "Ann", "bob"])


@dataclass(slots=True)
class Client:
    """A connection, and the answers it is owed in their order.

    Attributes:
        owed: of each request, what its answer must be: kind and words.
        rest: what is missing of the frame that has begun.
    """

    connection: Connection
    owed: deque[tuple[str, str]] = field(default_factory=deque)
    rest: bytes = b""


class Conversations(Machine):
    """Clients that ask, stop in the middle, end their side, reset and send junk, in any order."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self.daemon = daemon
        self.clients: dict[int, Client] = {}
        self.links: dict[str, str] = {}
        self.stack = AsyncExitStack()
        self.before = daemon.vitals()
        self.count = 0

    def client(self, number: int) -> Client:
        """The client of a number, connected and between two frames."""
        if number not in self.clients:
            opening = self.stack.enter_async_context
            self.clients[number] = Client(self.wait_for(opening, self.daemon.connect()))
        client = self.clients[number]
        self.complete(client)
        return client

    def complete(self, client: Client) -> None:
        """The rest of a frame that has begun."""
        if client.rest:
            self.wait_for(client.connection.send_bytes, client.rest)
            client.rest = b""

    def send(self, number: int, form: Form, *, cut: int = 0) -> Client:
        """Send a message, or its beginning."""
        client = self.client(number)
        whole = encode_frame(print_form(form))
        at = cut % len(whole) if cut else len(whole)
        self.wait_for(client.connection.send_bytes, whole[:at])
        client.rest = whole[at:]
        return client

    @rule(
        number=CLIENTS,
        text=TEXTS,
        source=st.sampled_from(["CLI", "TUI", "EMACS"]),
        cut=st.integers(0, 99),
    )
    def says(self, number: int, text: str, source: str, cut: int) -> None:
        """A text is answered by itself, with its own META."""
        self.count += 1
        marked = f"<{self.count}:{text}:{self.count}>"
        form = user_input(self.daemon.echo_of(marked), source=source, turn=self.count)
        self.send(number, form, cut=cut).owed.append((source, marked))

    @rule(number=CLIENTS, times=st.integers(1, 40))
    def says_much(self, number: int, times: int) -> None:
        """Many texts at once are answered in their order."""
        for _ in range(times):
            self.says(number, "much", "TUI", 0)

    @rule(number=CLIENTS, times=st.integers(1, 5))
    def checks_health(self, number: int, times: int) -> None:
        """Health checks are answered, each by one answer in its place."""
        for _ in range(times):
            self.send(number, HEALTH_CHECK).owed.append(("health", ""))

    @rule(number=CLIENTS)
    def beats(self, number: int) -> None:
        """A heartbeat has no answer."""
        self.send(number, HEARTBEAT)

    @rule(number=CLIENTS, word=st.sampled_from(["NOSE", "EAR", "USER-INPUTS"]))
    def means_nothing(self, number: int, word: str) -> None:
        """A message that means nothing is answered by an error in its place."""
        form = plist(type=Keyword("EVENT"), payload=plist(sensor=Keyword(word)))
        self.send(number, form).owed.append(("error", ""))

    @rule(number=CLIENTS, slow=st.booleans())
    def runs(self, number: int, slow: bool) -> None:  # noqa: FBT001 - drawn by name
        """A safe command's output comes back, also when it takes a while."""
        self.count += 1
        command = f"{'sleep 0.1; ' if slow else ''}echo ran {self.count}"
        self.send(number, shell(command)).owed.append(("output", f"ran {self.count}\n"))

    @rule(number=CLIENTS)
    def destroys(self, number: int) -> None:
        """A dangerous command is refused in its place; run, it would find nothing to destroy."""
        self.send(number, shell("rm -rf /nothing-to-destroy")).owed.append(("error", "blocked"))

    @rule(number=CLIENTS, name=NAMES, address=st.sampled_from(["1", "2", "naïve 日本"]))
    def links_a_name(self, number: int, name: str, address: str) -> None:
        """A link that is acknowledged is there; linking again means the last."""
        form = request("GATEWAY", "LINK", name=name, platform="signal", address=address)
        self.told(number, form, "GATEWAY-LINKED")
        self.links[name] = address

    @rule(number=CLIENTS, name=NAMES)
    def unlinks_a_name(self, number: int, name: str) -> None:
        """Unlinking takes that name and no other; one that is not linked is refused."""
        form = request("GATEWAY", "UNLINK", name=name)
        self.told(number, form, "GATEWAY-UNLINKED" if name in self.links else "")
        self.links.pop(name, None)

    @rule(number=CLIENTS)
    def lists_links(self, number: int) -> None:
        """Every client sees the same links: those of the model."""
        answer = self.told(number, request("GATEWAY", "LIST"), "GATEWAY-LIST")
        rows = answer.get("PAYLOAD", "LINKS") or ()
        found = {str(lookup(row, "NAME")): str(lookup(row, "ADDRESS")) for row in rows}

        assert found == self.links, f"contract 8: expected the links {self.links}, found {found}"

    @rule(number=CLIENTS, name=NAMES)
    def writes_as_a_link(self, number: int, name: str) -> None:
        """Text of a messaging address is answered while it is linked, and refused else."""
        marked = self.daemon.echo_of(f"as {name}")
        form = user_input(marked, source="MESSAGING", link=name)
        expected = ("MESSAGING", f"as {name}") if name in self.links else ("error", "link")
        self.read_all(self.client(number))
        self.send(number, form).owed.append(expected)
        self.read_all(self.clients[number])

    def told(self, number: int, form: Form, sensor: str) -> Message:
        """What is answered at once, to a client that is owed nothing else."""
        client = self.client(number)
        self.read_all(client)
        answer: Message = self.wait_for(ask, client.connection, form)
        if not sensor:
            expect_refusal(answer, client.connection)
            return answer

        assert answer.get("PAYLOAD", "SENSOR") == Keyword(sensor), (
            f"contract 8: expected :{sensor}, found {answer.payload}\n{client.connection.transcript}"
        )
        return answer

    @rule(number=CLIENTS)
    def reads(self, number: int) -> None:
        """The next answer is the one that is owed."""
        client = self.clients.get(number)
        if client and len(client.owed) > bool(client.rest):
            self.read(client)

    def read(self, client: Client) -> None:
        """Read one answer and hold it to what is owed."""
        connection = client.connection

        async def receive() -> Message:
            return await due(connection, "an answer that is owed", seconds=ANSWER_S)

        message = self.wait_for(receive)
        kind, words = client.owed.popleft()
        if kind == "health":
            expect_health(message)
        elif kind == "error":
            expect_refusal(message, connection, *filter(None, [words]))
        elif kind == "output":
            found = message.get("PAYLOAD", "STDOUT")

            assert found == words, (
                f"contract 5: expected the output {words!r}, found {message.payload[:300]}\n"
                f"{connection.transcript}"
            )
        else:
            found = expect_message(message, connection)

            assert words in found, (
                f"contract 2: expected {words[:60]!r} next, found {found[:60]!r}\n"
                f"{connection.transcript}"
            )
            assert message.get("META", "SOURCE") == Keyword(kind), (
                f"contract 2: expected META of {kind}, found {message.payload[:200]}"
            )

    def read_all(self, client: Client) -> None:
        """Read all that is owed."""
        self.complete(client)
        while client.owed:
            self.read(client)

    @precondition(lambda self: self.clients)
    @rule(number=CLIENTS)
    def ends_its_side(self, number: int) -> None:
        """A client that has ended its side still gets all it is owed, and then the end."""
        client = self.client(number)
        self.wait_for(client.connection.send_eof)
        self.read_all(client)
        self.expect_end(client, logs=0)
        del self.clients[number]

    @precondition(lambda self: self.clients)
    @rule(number=CLIENTS, junk=st.sampled_from([b"ZZZZZZ", b"000004(:A)", b"\xff", b"000002()#"]))
    def sends_junk(self, number: int, junk: bytes) -> None:
        """A malformed frame is answered by an error and the end."""
        client = self.client(number)
        self.read_all(client)
        self.wait_for(client.connection.send_bytes, junk)
        self.expect_end(client, logs=1)
        del self.clients[number]

    def expect_end(self, client: Client, *, logs: int) -> None:
        """The end of a connection, after so many error LOGs and nothing else."""

        async def end() -> tuple[Message, ...]:
            return await client.connection.receive_until_closed(seconds=END_S)

        messages = self.wait_for(end)
        kinds = [str(message.get("TYPE")) for message in messages]

        assert kinds == [":LOG"] * logs, (
            f"contract 3: expected {logs} LOG and the end, found {kinds}\n"
            f"{client.connection.transcript}"
        )

    @precondition(lambda self: self.clients)
    @rule(number=CLIENTS)
    def goes_away(self, number: int) -> None:
        """A client that is gone, in the middle of whatever, is no one else's concern."""
        client = self.clients.pop(number, None)
        if client:
            self.wait_for(client.connection.abort)

    @invariant()
    def the_same_daemon(self) -> None:
        """Whatever a client does, the daemon is the process it was."""
        found = self.daemon.vitals().identity

        assert found == self.before.identity, (
            f"contract 3: the daemon was {self.before.identity}, now it is {found}"
        )

    def teardown(self) -> None:
        """All that is owed comes, and what the clients held is given back."""
        try:
            for client in self.clients.values():
                self.read_all(client)
            for name in list(self.links):
                self.unlinks_a_name(0, name)
        finally:
            self.wait_for(self.stack.aclose)
        self.wait_for(self.given_back)

    async def given_back(self) -> None:
        """Wait until the daemon holds no more descriptors than before."""
        expect_health(await self.daemon.health())
        await settled(self.daemon.pid, descriptors=self.before.descriptors, seconds=20)


class Commands(Machine):
    """Shell commands that do harm, disguised in every way that a seed comes to."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self.daemon = daemon
        self.grove = Grove(daemon, 7)
        self.stack = AsyncExitStack()
        self.connection = self.wait_for(self.stack.enter_async_context, daemon.connect())

    @rule(seed=st.integers(0, 2**32))
    def tries(self, seed: int) -> None:
        """A combination of disguises leaves no trace."""
        command = combined(random.Random(seed), self.grove.fill)
        answer = self.wait_for(
            ask, self.connection, shell(command, timeout=5), seconds=ANSWER_S * 2
        )
        harm = self.grove.harm()
        made = self.grove.made()

        assert not harm, f"contract 5: the command {command!r} left traces: {harm}"
        assert not (refused(answer, self.connection) and made), (
            f"contract 5: the command {command!r} was refused, and has made {made}"
        )

    def teardown(self) -> None:
        """Close the connection."""
        self.wait_for(self.stack.aclose)


@pytest.fixture
async def patient(start, subject) -> AsyncIterator[Daemon]:
    """A daemon that waits for the rest of a frame as long as a search takes."""
    knobs = {"frame_s": 600} if "frame_s" in subject.table("knobs") else {}
    async with start(Settings(knobs=knobs), name="explored") as daemon:
        async with daemon.connect() as connection:
            await ask(connection, user_input("ping"))
            await ask(connection, shell("echo warm"))
        yield daemon


@pytest.mark.capability("echo", "shell-reply", "links", "gateway-list")
async def test_conversations_of_any_order(explore: Explore, patient: Daemon) -> None:
    """Whatever several clients do in whatever order, each gets what it is owed, in its order."""
    await explore(lambda: Conversations(patient), steps=40)


@pytest.mark.requires("confinement")
@pytest.mark.capability("shell-reply")
async def test_commands_in_any_disguise(explore: Explore, confined: Daemon) -> None:
    """No disguise of a harm, and no combination of them, gets it run."""
    await explore(lambda: Commands(confined), steps=25)
