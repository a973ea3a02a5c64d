"""Contracts 4, 6, 7 and 8 from the command line: what an operator types reaches the same daemon.

Each command is given as the subject file writes it; what it prints is compared with the wire.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.doubles.http import Recorder, Rule, open_recorder
from harness_core.front.skips import not_run
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.ending import ended
from suites.daemon.messages import ask, expect_health, request, shell, user_input
from suites.daemon.wire import Form, Keyword, lookup

pytestmark = [pytest.mark.covers("CONTRACT-6-CLI"), pytest.mark.capability("cli")]

#: A command starts, asks and prints in a third of a second.
COMMAND_S = 30.0

#: From the request to its end, a daemon that stops takes less.
STOP_S = 5.0

#: Links that are made at the same time.
MANY = 12

#: Runs a command of ``[cli]``; its status, and what it printed to both.
Typed = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def typed(run) -> Typed:
    """Type a command of the subject file for a daemon."""
    numbers = itertools.count(1)

    async def output(daemon: Daemon, verb: str, /, **fields: object) -> tuple[int, str]:
        argv = daemon.client("cli", verb, **fields)
        if "port" in fields:
            argv += daemon.client("cli", "at", **fields)
        name = f"{verb}-{next(numbers)}"
        environment = daemon.environment()
        async with run.child(argv, name=name, env=environment, cwd=daemon.home) as child:
            return await ended(child, argv, seconds=COMMAND_S, contract="6")

    return output


@pytest.fixture
async def recorder(evidence) -> AsyncIterator[Recorder]:
    """A messaging platform's webhook."""
    rules = [Rule(path="/hook")]
    async with open_recorder("platform", evidence=evidence, rules=rules) as recorder:
        yield recorder


#: What languages print where there is no value.
NO_VALUE: Final = re.compile(r"(?m)(?:^|[ \t=:(])(None|undefined)(?=[),:]|$)")


def expect_printed(outcome: tuple[int, str], *texts: str, status: int = 0) -> None:
    """A command has ended with a status and printed each of some texts, and no traceback."""
    found, printed = outcome

    assert found == status, f"contract 6: expected status {status}, found {found}:\n{printed}"
    lost = [text for text in texts if text not in printed]

    assert not lost, f"contract 6: {lost} is not in what was printed:\n{printed}"
    assert "Traceback" not in printed, f"contract 6: an error is a line, found:\n{printed}"
    missing = NO_VALUE.search(printed)
    assert missing is None or any(missing[0] in text for text in texts), (
        f"contract 6: expected values, found {missing and missing[0]!r} in what was printed:\n{printed}"
    )


async def listed(daemon: Daemon, target: str, key: str) -> list[Form]:
    """Rows of a list over the wire."""
    async with daemon.connect() as connection:
        answer = await ask(connection, request(target, "LIST"))
    rows = answer.get("PAYLOAD", key) or ()

    assert isinstance(rows, tuple), f"no list of :{key}: {answer.payload}"
    return list(rows)


@pytest.mark.capability("echo")
async def test_a_text_is_answered(daemon: Daemon, typed: Typed, token: str) -> None:
    """A text that is typed is answered as over the wire, in any script."""
    for text in (
        f"naïve 日本 😀 {token}",
        f"-x --port 1 {token} -- --help",
        f"'q' \"d\" $HOME `x` \\ \\n %s {{}} {token}",
        f"a   b\n\t\n  {token}",
        f"(:TYPE :EVENT :X {token})",
    ):
        outcome = await typed(daemon, "say", text=daemon.echo_of(text))
        expect_printed(outcome, text)


@pytest.mark.capability("shell-reply")
async def test_a_command_runs_or_is_refused(daemon: Daemon, typed: Typed, token: str) -> None:
    """A command's output and status are those of the command line; a refusal is an error of it."""
    ran = await typed(daemon, "shell", command=f"echo out {token}; echo err {token} >&2; exit 7")
    expect_printed(ran, f"out {token}\n", f"err {token}\n", status=7)
    expect_printed(await typed(daemon, "shell", command="true"))
    margins = rf"printf '\n \t{token} \n\n'; printf ' \n err \t\n' >&2"
    outcome = await typed(daemon, "shell", command=margins)
    expect_printed(outcome, f"\n \t{token} \n\n", " \n err \t\n")
    for status in (126, 127, 128, 129, 137, 254):
        outcome = await typed(daemon, "shell", command=f"bash -c 'exit {status}'")
        expect_printed(outcome, status=status)
    outcome = await typed(daemon, "shell", command="timeout -s KILL 0.1 sleep 5")
    expect_printed(outcome, status=137)
    # Of what is not there: nothing is lost where a product runs it.
    dangerous = f"rm -rf /nothing-{token}"
    expect_printed(await typed(daemon, "shell", command=dangerous), "blocked", status=1)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_a_command_prints_to_each_stream_what_it_would(
    daemon: Daemon, run, token: str
) -> None:
    """What a command prints to its stderr is apart from its stdout at the command line, too."""
    rows = {"out": f"echo out-{token}", "err": f"echo err-{token} >&2"}
    for number, order in enumerate((("out", "err"), ("err", "out"), ("out",), ("err",))):
        command = "; ".join(rows[stream] for stream in order)
        argv = daemon.client("cli", "shell", command=command)
        errors = daemon.home / f"{token}-{number}"
        apart = ["sh", "-c", 'exec "$@" 2> "$0"', str(errors), *argv]
        starting = run.child(
            apart, name=f"apart-{number}", env=daemon.environment(), cwd=daemon.home
        )
        async with starting as child:
            status, printed = await ended(child, argv, seconds=COMMAND_S, contract="6")
        texts = {"out": printed, "err": errors.read_text(encoding="utf-8", errors="replace")}
        errors.unlink()
        found = {
            (stream, where)
            for stream in rows
            for where in texts
            if f"{stream}-{token}" in texts[where]
        }
        expected = {(stream, stream) for stream in order}

        assert (status, found) == (0, expected), (
            f"contract 6: {command!r} is typed: expected what it prints to each stream on that stream "
            f"alone, found status {status}, stdout {texts['out']!r} and stderr {texts['err']!r}"
        )


async def test_a_daemon_that_was_killed_is_not_there(start, typed: Typed, token: str) -> None:
    """After a crash a command says that there is no daemon; after the next start it asks that one."""
    async with start() as daemon:
        for _ in range(2):
            expect_printed(await typed(daemon, "status"), str(daemon.pid), str(daemon.port))
            daemon.kill()
            await daemon.child.wait()
            for verb, fields in (("status", {}), ("say", {"text": token}), ("gateways", {})):
                refused = await typed(daemon, verb, **fields)

                assert refused[0] != 0, (
                    f"contract 6: the daemon was killed, and {verb} claims success:\n{refused[1]}"
                )
                expect_printed(refused, status=refused[0])
                assert refused[1].strip(), f"contract 6: the error of {verb} has no text"
            await daemon.restart()
        expect_printed(await typed(daemon, "status"), str(daemon.pid), str(daemon.port))


@pytest.mark.capability("shell-reply")
async def test_a_command_may_take_its_time(daemon: Daemon, typed: Typed, token: str) -> None:
    """The command line waits for a command that takes longer than a connection does; others go on."""

    async def slow() -> None:
        command = f"sleep 3.5; echo late {token}"
        expect_printed(await typed(daemon, "shell", command=command), f"late {token}\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        expect_printed(await typed(daemon, "shell", command="exit 3"), status=3)
        expect_printed(await typed(daemon, "shell", command="exit 255"), status=255)


@pytest.mark.capability("shell-reply", "echo")
async def test_options_and_words_mean_what_they_say(
    daemon: Daemon, typed: Typed, token: str
) -> None:
    """The time that a command is given is the time it has; a text of several words is said whole."""
    rows = daemon.subject.table("cli")
    if "shell_within" in rows:
        # Shorter than what a command is given that asks for no time.
        slow = f"sleep 6; echo {token}"
        status, printed = await typed(daemon, "shell_within", seconds="0.5", command=slow)

        assert status != 0, f"contract 6: a command that was ended claims success: {printed!r}"
        assert token not in printed, (
            f"contract 6: a command that is given half a second is ended then, found {printed!r}"
        )
        quick = await typed(daemon, "shell_within", seconds="30", command=f"echo {token}; exit 4")
        expect_printed(quick, f"{token}\n", status=4)
    if "say_words" in rows:
        first, *others = daemon.echo_of(f"{token} 日本").split(" ", 1)
        words = {"first": first, "second": " ".join(others), "third": f"last-{token}"}
        expect_printed(await typed(daemon, "say_words", **words), f"{token} 日本 last-{token}")


@pytest.mark.knob("port")
@pytest.mark.capability("shell-reply", "echo")
async def test_an_option_says_which_daemon_is_asked(
    daemon: Daemon, start, typed: Typed, token: str
) -> None:
    """Every command asks the daemon of the port it is given, whatever a file or a variable says.

    So does the daemon itself: the port of its command line is where it listens.
    """
    if "at" not in daemon.subject.table("cli"):
        not_run("subject", f"{daemon.subject.path.name} does not say how a command is given a port")
    # Its variable names the port of another daemon, which is taken.
    async with start(Settings(knobs={"port": daemon.port})) as own:
        assert own.port != daemon.port, (
            f"contract 1: started with port 0, it listens on a free port; found {own.port}"
        )
        for there in (daemon, own):
            at = {"port": there.port}
            told = await typed(own, "status", **at)
            expect_printed(told, str(there.pid), str(there.port))
            outcome = await typed(own, "shell", command="pwd", **at)
            expect_printed(outcome, f"{there.root}\n")
            expect_printed(await typed(own, "say", text=own.echo_of(token), **at), token)
            sources = await typed(own, "skills", **at), await typed(own, "gateways", **at)
            for printed in sources:
                expect_printed(printed)
        # Without the option it is the daemon of this home.
        expect_printed(await typed(own, "status"), str(own.pid), str(own.port))
        # A port where nobody listens is an error, whoever listens elsewhere.
        refused = await typed(own, "say", text=own.echo_of(token), port=1)

        assert refused[0] != 0, (
            f"contract 6: nothing listens on the port that say was given, and it claims success:\n"
            f"{refused[1]}"
        )
        expect_printed(refused, status=refused[0])
        expect_printed(await typed(daemon, "stop", port=own.port))
        await own.child.wait()
        # No daemon of this home runs, and the variable says where another one is.
        expect_printed(await typed(own, "status"), str(daemon.pid), str(daemon.port))
        expect_health(await daemon.health())


@pytest.mark.covers("CONTRACT-1-STOP")
@pytest.mark.capability("shutdown-command")
@pytest.mark.knob("refuse_shutdown")
async def test_what_is_said_of_a_stop_is_so(start, typed: Typed) -> None:
    """Where clients may not stop it, stop ends with an error as often as it is typed, or it does stop it."""
    async with start(Settings(knobs={"refuse_shutdown": 1})) as daemon:
        for turn in (1, 2):
            status, printed = await typed(daemon, "stop")
            if status == 0:
                with trio.move_on_after(patience(STOP_S)):
                    await daemon.child.wait()

                assert daemon.child.returncode is not None, (
                    f"contract 6: the daemon refuses to be stopped, and stop claims success (turn "
                    f"{turn}): expected an error and its reason, found status 0 and {printed!r}"
                )
                return
            expect_printed((status, printed), status=status)

            assert printed.strip(), f"contract 6: the error of stop has no text (turn {turn})"
            expect_health(await daemon.health())


#: Characters of an output: the least, and those around what programs buffer by.
SIZES = (1, 4_096, 65_535, 65_536, 65_537, 262_145, 1_048_577, 3_145_728)

#: What a daemon keeps of an output, and reads in a frame, so that each of them comes back whole.
ROOM = 1 << 22


@pytest.mark.knob("frame_characters", "output_characters")
@pytest.mark.capability("shell-reply", "shell-text", "echo")
async def test_answers_of_any_size_are_printed_whole(start, typed: Typed, token: str) -> None:
    """What a command prints is printed again, to its last character, and so is a text's answer."""
    knobs = {"frame_characters": ROOM, "output_characters": ROOM}
    async with start(Settings(knobs=knobs)) as daemon:
        asking = daemon.subject.table("texts")["shell"]

        def expect_all(outcome: tuple[int, str], text: str, what: str) -> None:
            status, printed = outcome

            assert (status, text in printed) == (0, True), (
                f"contract 6: {what}: expected status 0 and {len(text)} characters, found status "
                f"{status} and {len(printed)}: {printed[:200]!r} … {printed[-200:]!r}"
            )

        for size in SIZES:
            command, text = f"printf '%0{size}d' 7", "7".zfill(size)
            expect_all(await typed(daemon, "shell", command=command), text, command)
        command, text = f"printf '%0{SIZES[-1]}d' 7", "7".zfill(SIZES[-1])
        said = await typed(daemon, "say", text=asking.replace("{command}", command))
        expect_all(said, text, f"say {command}")
        # As long as an operator's system lets a word be, and of letters of several bytes.
        for text in (f"<{'x' * 120_000}{token}>", f"<{'日' * 40_000}{token}>"):
            said = await typed(daemon, "say", text=daemon.echo_of(text))
            expect_all(said, text, f"a text of {len(text)} characters")


@pytest.mark.covers("CONTRACT-4-SKILLS", "CONTRACT-7-GATEWAYS", "CONTRACT-3-HEALTH")
@pytest.mark.capability("skill-list", "gateway-list")
async def test_lists_are_those_of_the_wire(daemon: Daemon, typed: Typed, skilled: Daemon) -> None:
    """Skills, rejected ones with their reasons, gateways and health read as over the wire."""
    for each, word, status in ((daemon, "HEALTHY", 0), (skilled, "DEGRADED", 1)):
        names = [str(lookup(row, "NAME")) for row in await listed(each, "SKILL", "SKILLS")]
        rejected = await listed(each, "SKILL", "REJECTED")
        names += [str(lookup(row, key)) for row in rejected for key in ("NAME", "REASON")]
        expect_printed(await typed(each, "skills"), *names)
        gateways = await listed(each, "GATEWAY", "GATEWAYS")
        printed = await typed(each, "gateways")
        expect_printed(printed, *(str(lookup(row, "NAME")) for row in gateways))
        expect_beside(printed[1], gateways, "KIND")
        printed = await typed(each, "status")
        expect_printed(printed, word, str(each.pid), str(each.port), status=status)
        checks = (await each.health()).get("CHECKS") or ()
        expect_beside(printed[1], [row for row in checks if isinstance(row, tuple)], "STATUS")


def expect_beside(printed: str, rows: Sequence[Form], key: str) -> None:
    """A line that names a row of a list shows the word that the wire has for it."""
    for row in rows:
        name, value = str(lookup(row, "NAME")), lookup(row, key)
        named = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        lines = [line for line in printed.splitlines() if named.search(line)]
        if not isinstance(value, Keyword) or not lines:
            continue

        assert any(value.name.casefold() in line.casefold() for line in lines), (
            f"contract 6: expected {name} with its {key.lower()} {value.name}, found {lines}"
        )


@pytest.mark.covers("CONTRACT-8-MESSAGING")
@pytest.mark.capability("links", "gateway-list")
async def test_links_are_those_of_the_wire(start, typed: Typed, recorder: Recorder) -> None:
    """What is linked on the command line is linked on the wire, and the other way round.

    A name is linked, linked again to another address and unlinked; the daemon may be stopped.
    """
    async with start() as daemon:
        link = {"name": "ann", "platform": "signal", "address": "first"}
        expect_printed(await typed(daemon, "link", **link), "ann", "first")
        expect_printed(await typed(daemon, "link", **link | {"name": "ann.b"}), "ann.b")
        expect_printed(await typed(daemon, "link", **link | {"address": "naïve 日本"}), "日本")
        await expect_links(daemon, {"ann": "naïve 日本", "ann.b": "first"})
        await expect_heard(daemon, "ann", "ann.b")
        async with daemon.connect() as connection:
            form = request("GATEWAY", "LINK", name="bob", platform="matrix", address="9")
            await ask(connection, form)
        expect_printed(await typed(daemon, "links"), "ann signal naïve 日本", "bob matrix 9")
        printed = await typed(daemon, "gateways")
        expect_printed(printed, "ann", "bob")
        rows = [line for line in printed[1].splitlines() if "日本" in line]

        assert not [row for row in rows if "ann" not in row or "bob" in row], (
            f"contract 6: an address is printed beside its own link: expected ann, found {rows}"
        )
        expect_printed(await typed(daemon, "unlink", name="ann"), "ann")
        await expect_links(daemon, {"ann.b": "first", "bob": "9"})
        await expect_heard(daemon, "ann.b", "bob", unheard="ann")
        if "link_webhook" in daemon.subject.table("cli"):
            await expect_webhook(daemon, typed, recorder)
        refused = await typed(daemon, "unlink", name="ann")
        expect_printed(refused, "ann", status=1)
        refused = await typed(daemon, "link", **link | {"platform": "carrier-pigeon"})
        expect_printed(refused, "carrier-pigeon", status=1)
        expect_printed(await typed(daemon, "stop"))
        await daemon.child.wait()
        expect_printed(await typed(daemon, "unlink", name="bob"), "bob")
        for command in ("status", "skills", "stop"):
            refused = await typed(daemon, command)

            assert refused[0] != 0, f"contract 6: without a daemon {command} claims success"
            expect_printed(refused, status=refused[0])
        await daemon.restart()
        await expect_links(daemon, {"ann.b": "first"})


@pytest.mark.covers("CONTRACT-8-MESSAGING")
@pytest.mark.capability("links", "gateway-list")
async def test_links_of_one_moment_are_all_there(daemon: Daemon, typed: Typed, token: str) -> None:
    """Links that are made on the command line and over the wire at the same time are each kept."""
    links = {f"{token}{number}": f"address-{number}" for number in range(MANY)}

    async def by_command(name: str, address: str) -> None:
        outcome = await typed(daemon, "link", name=name, platform="signal", address=address)
        expect_printed(outcome, name)

    async def by_wire(name: str, address: str) -> None:
        async with daemon.connect() as connection:
            form = request("GATEWAY", "LINK", name=name, platform="matrix", address=address)
            answer = await ask(connection, form)

            assert answer.get("TYPE") != Keyword("LOG"), f"contract 8: refused: {answer.payload}"

    async with trio.open_nursery() as nursery:
        for number, (name, address) in enumerate(links.items()):
            nursery.start_soon(by_command if number % 2 else by_wire, name, address)
    rows = {lookup(row, "NAME"): row for row in await listed(daemon, "GATEWAY", "LINKS")}
    found = {name: lookup(rows[name], "ADDRESS") for name in links if name in rows}

    assert links == found, f"contract 8: of links made at once expected {links}, found {found}"


async def expect_webhook(daemon: Daemon, typed: Typed, recorder: Recorder) -> None:
    """A webhook that is read from a file is where texts go, and what it says is not printed."""
    file = daemon.home / "webhook"
    file.write_text(f"{recorder.url}/hook?token=w6Gf28cliTy\n", encoding="utf-8")
    link = {"name": "hooked", "platform": "slack", "address": "3", "file": str(file)}
    printed = [await typed(daemon, "link_webhook", **link), await typed(daemon, "links")]
    async with daemon.connect() as connection:
        form = request("GATEWAY", "SEND", name="hooked", text="hello")
        answer = await ask(connection, form)
    found = [each.path for each in recorder.requests]

    assert ["/hook"] == found, (
        f"contract 8: a text goes to the webhook of its link: expected ['/hook'], found {found}: "
        f"{answer.payload}"
    )
    for outcome in printed:
        expect_printed(outcome, "hooked")

        assert "w6Gf28cliTy" not in outcome[1], (
            f"contract 8: what makes a webhook a secret is shown nowhere: found {outcome[1]}"
        )
    missing = await typed(daemon, "link_webhook", **link | {"file": f"{file}-of-no-name"})
    expect_printed(missing, "of-no-name", status=1)
    expect_printed(await typed(daemon, "unlink", name="hooked"), "hooked")


async def expect_heard(daemon: Daemon, *names: str, unheard: str = "") -> None:
    """Text of each link is answered, and that of one that is none is refused."""
    async with daemon.connect() as connection:
        for name in (*names, *([unheard] if unheard else [])):
            answer = await ask(connection, user_input("ping", source="MESSAGING", link=name))
            refused = answer.get("TYPE") == Keyword("LOG")

            assert refused == (name == unheard), (
                f"contract 8: text of {name} is {'refused' if name == unheard else 'answered'} by what "
                f"is linked now, found {answer.payload}"
            )


async def expect_links(daemon: Daemon, expected: dict[str, str]) -> None:
    """The links over the wire: name → address."""
    rows = await listed(daemon, "GATEWAY", "LINKS")
    found = {str(lookup(row, "NAME")): str(lookup(row, "ADDRESS")) for row in rows}

    assert found == expected, f"contract 8: expected the links {expected}, found {found}"


async def test_setup_is_run_again(start, subject, run) -> None:
    """Setup that is run a second time brings back what is missing and keeps what was changed."""
    if not subject.table("setup") or "directory" not in subject.table("skills"):
        not_run("subject", f"{subject.path.name} has no [setup], or no place of skills")
    async with start() as daemon:
        directory = Path(daemon.fill(subject.table("skills")["directory"]))
        files = sorted(path for path in directory.iterdir() if path.is_file())
        missing, changed = files[0], files[-1]
        content = missing.read_bytes()
        missing.unlink()
        ours = changed.read_text(encoding="utf-8") + "\n# ours\n"
        changed.write_text(ours, encoding="utf-8")
        argv = daemon.client("setup")
        environment = daemon.environment()
        async with run.child(argv, name="again", env=environment, cwd=daemon.home) as child:
            status, printed = await ended(child, argv, seconds=COMMAND_S, contract="1")

        assert status == 0, f"contract 1: setup is run a second time: status {status}:\n{printed}"
        assert missing.read_bytes() == content, f"contract 1: {missing.name} is not as it was"
        assert changed.read_text(encoding="utf-8") == ours, (
            f"contract 1: setup has overwritten {changed.name}, which was changed"
        )
        assert expect_health(await daemon.health()) == Keyword("HEALTHY"), (
            "contract 1: after a second setup the daemon is not healthy"
        )
        async with daemon.connect() as connection:
            await ask(connection, shell("true"))
