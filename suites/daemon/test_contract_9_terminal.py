"""Contract 9, the terminal client: it renders, evaluates, survives a drop and comes back by itself."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from suites.daemon.daemon import Daemon, Settings
from suites.daemon.messages import expect_health
from suites.daemon.terminal import Terminal, open_terminal

pytestmark = [
    pytest.mark.covers("CONTRACT-9-TERMINAL"),
    pytest.mark.requires("tmux"),
    pytest.mark.capability("tui"),
]

#: Until the client has noticed that the daemon is back; it tries again every second or so.
RECONNECT_S = 20.0

#: The last line of a long answer: 64 kB in all, less than what a daemon keeps of an output.
LAST = 12_000

#: Characters of a frame that a daemon takes at most, where a text is to be too long.
LONGEST = 300

#: Connections in vain that a client makes, which does not give up.
CALLS = 5


@asynccontextmanager
async def tui(run, daemon: Daemon) -> AsyncIterator[Terminal]:
    """The terminal client of a daemon, connected."""
    argv = daemon.client("tui")
    async with open_terminal(run, argv, environment=daemon.environment()) as terminal:
        table = daemon.subject.table("tui")
        await terminal.expect(
            "its prompt and that it is connected",
            lambda screen: table["prompt"] in screen and table["connected"] in screen,
        )
        yield terminal


def answered(token: str, typed: str):
    """Whether a screen shows a line with ``token`` that is not the line that was typed."""
    return lambda screen: any(token in line and typed not in line for line in screen.splitlines())


@pytest.mark.capability("echo")
async def test_renders_and_answers(run, daemon: Daemon, token: str) -> None:
    """It shows a prompt and where it is connected to; what is typed is answered on the screen.

    In any script, and after an answer that is longer than a screen, or a buffer, is.
    """
    typed = daemon.echo_of(token)
    async with tui(run, daemon) as terminal:
        await terminal.enter(typed)
        await terminal.expect("an answer", answered(token, typed))
        for text in (f"naïve {token[::-1]} Ωж", f'"{token}" \\ (:quoted) ; #.1'):
            await terminal.enter(daemon.echo_of(text))
            await terminal.expect(f"an answer with {text!r}", answered(text, daemon.echo_of(text)))
        shell = daemon.subject.table("texts").get("shell")
        if shell:
            await terminal.enter(shell.replace("{command}", f"seq {LAST}"))
            await terminal.expect(
                f"an answer of {LAST} lines, to its last",
                lambda screen: all(
                    re.search(rf"^\s*{line}\s*$", screen, re.MULTILINE)
                    for line in range(LAST - 30, LAST + 1)
                ),
            )
            await terminal.enter(daemon.echo_of(f"after {token}"))
            await terminal.expect(
                "an answer after the long one",
                answered(f"after {token}", daemon.echo_of(f"after {token}")),
            )
            # Of what is not there: nothing is lost where a product runs it.
            await terminal.enter(shell.replace("{command}", f"rm -rf /nothing-{token}"))
            await terminal.expect(
                "that a dangerous command is blocked", lambda screen: "blocked" in screen.lower()
            )
        screen = await terminal.expect(
            "where it is connected to", lambda screen: str(daemon.port) in screen
        )

        assert daemon.subject.table("tui")["connected"] in screen, (
            f"contract 9: it shows that it is connected, found:\n{screen}"
        )


#: What is printed in answers that are longer than buffers, and how the screen ends then: one line that
#: is that long, and many.
LONG = (
    ("printf '%065537d' 7; echo; echo end of one line", r"0{200}7\s*\n\s*end of one line\s*$"),
    ("printf '%0262145d' 7; echo; echo end of a line", r"0{200}7\s*\n\s*end of a line\s*$"),
    ("seq 170000", r"^169999\s*\n\s*170000\s*$"),
)
ROOM = 1 << 22


@pytest.mark.knob("frame_characters", "output_characters")
@pytest.mark.capability("echo", "shell-text")
async def test_answers_of_any_size_are_shown(run, start, token: str) -> None:
    """An answer that is longer than any buffer is shown to its end, and the connection goes on."""
    knobs = {"frame_characters": ROOM, "output_characters": ROOM}
    async with start(Settings(knobs=knobs)) as daemon, tui(run, daemon) as terminal:
        table = daemon.subject.table("tui")
        asking = daemon.subject.table("texts")["shell"]
        for number, (command, end) in enumerate(LONG):
            await terminal.enter(asking.replace("{command}", command))
            shown = re.compile(end, re.MULTILINE)
            screen = await terminal.expect(
                f"the answer to {command!r}, to its last line",
                lambda screen, shown=shown: shown.search(screen) is not None,
                seconds=RECONNECT_S,
            )

            assert table["lost"] not in screen, (
                f"contract 9: a long answer costs no connection, found:\n{screen[-2000:]}"
            )
            typed = daemon.echo_of(f"after-{number}-{token}")
            await terminal.enter(typed)
            await terminal.expect(
                "an answer after the long one", answered(f"after-{number}-{token}", typed)
            )


async def test_evaluates(run, daemon: Daemon) -> None:
    """/eval prints the value of an expression, which could not have been written beforehand."""
    first, second = random.randrange(10_000, 99_999), random.randrange(10_000, 99_999)
    async with tui(run, daemon) as terminal:
        await terminal.enter(f"/eval (+ {first} {second})")
        screen = await terminal.expect("the value", lambda screen: str(first + second) in screen)

        assert f"{first + second}" in screen, (
            f"contract 9: /eval prints the value {first + second}, found:\n{screen}"
        )
        # An error of the expression is shown, and the client goes on.
        wrong = "this-is-not-a-function"
        await terminal.enter(f"/eval ({wrong} 1)")
        await terminal.expect(
            f"what is wrong with ({wrong} 1), by its name",
            lambda screen: any(
                wrong in line.casefold() and "/eval" not in line for line in screen.splitlines()
            ),
        )
        await terminal.enter(f"/eval (* {first} 2)")
        await terminal.expect("the next value", lambda screen: str(first * 2) in screen)


@pytest.mark.capability("echo")
async def test_comes_back_after_a_drop(run, start, token: str) -> None:
    """When the daemon dies it shows that; when it is back it reconnects, and what was typed is sent.

    Of a text that the daemon could still take and did not answer the client says so, or sends it again.
    """
    async with start(Settings(same_port=True)) as daemon, tui(run, daemon) as terminal:
        table = daemon.subject.table("tui")
        daemon.child.signal(signal.SIGSTOP)
        last = f"last-{token[::-1]}"
        await terminal.enter(daemon.echo_of(last))
        await terminal.expect("what was typed last", lambda screen: last in screen)
        daemon.kill()
        await terminal.expect("that the connection is lost", lambda screen: table["lost"] in screen)
        typed, before = daemon.echo_of(token), f"first-{token[::-1]}"
        await terminal.enter(daemon.echo_of(before))
        await terminal.enter(typed)
        await expect_calls(daemon.port, CALLS)
        await daemon.restart()
        await terminal.expect(
            "that it is connected again",
            lambda screen: screen.rfind(table["connected"]) > screen.rfind(table["lost"]),
            seconds=RECONNECT_S,
        )
        screen = await terminal.expect(
            "the answer to what was typed in between", answered(token, typed), seconds=RECONNECT_S
        )

        assert token in screen, (
            f"contract 9: what was typed meanwhile is answered, found:\n{screen}"
        )
        assert screen.rfind(before) < screen.rfind(token), (
            f"contract 9: texts are sent in the order they were typed: expected the answer to {before!r} "
            f"before that to {token!r}, found:\n{screen}"
        )
        # As often as the text that was answered: typed, and one time more.
        await terminal.expect(
            f"what became of {last!r}, typed before the drop: its answer, or that there is none",
            lambda screen: (
                _lines_with(screen, last, daemon.echo_of(last)) >= _lines_with(screen, token, typed)
            ),
        )
        # Each was sent once, and the next drop is like the first.
        shown = screen.count(typed)
        again = f"again-{token}"
        for _ in range(2):
            daemon.kill()
            await terminal.expect(
                "that the connection is lost again",
                lambda screen: screen.rfind(table["lost"]) > screen.rfind(table["connected"]),
            )
            await daemon.restart()
            await terminal.expect(
                "that it is connected once more",
                lambda screen: screen.rfind(table["connected"]) > screen.rfind(table["lost"]),
                seconds=RECONNECT_S,
            )
        await terminal.enter(daemon.echo_of(again))
        screen = await terminal.expect(
            "the answer after three drops", answered(again, daemon.echo_of(again))
        )

        assert screen.count(typed) == shown, (
            f"contract 9: a text that was answered is no matter of a later drop: expected {typed!r} "
            f"{shown} times, found\n{screen}"
        )
        for text in (before, token, again):
            asked = daemon.echo_of(text)
            lines = [
                line
                for line in screen.splitlines()
                if re.search(rf"(?<![\w-]){text}(?![\w-])", line) and asked not in line
            ]

            assert len(lines) == 1, (
                f"contract 9: a text is sent once and answered once, however often the connection "
                f"drops: expected one answer to {text!r}, found {lines} on\n{screen}"
            )
        expect_health(await daemon.health())


#: What a command takes whose answer is to be lost, once it has had its effect.
LOST_S = 6


@pytest.mark.capability("echo", "shell-text")
async def test_what_was_run_is_not_run_again(run, start, token: str) -> None:
    """A command that ran, and whose answer a drop has cost, is not run once more after it."""
    async with start(Settings(same_port=True)) as daemon, tui(run, daemon) as terminal:
        table, made = daemon.subject.table("tui"), daemon.root / f"made-{token}.txt"
        asking = daemon.subject.table("texts")["shell"]
        command = f"echo {token[::-1]} > {made.name}; sleep {LOST_S}"
        await terminal.enter(asking.replace("{command}", command))

        async def has_run() -> bool:
            return made.is_file() and made.read_text(encoding="utf-8") != ""

        with trio.move_on_after(patience(RECONNECT_S)):
            await until(has_run)

        assert made.is_file(), (
            f"contract 9: a command that is typed is run, found:\n{await terminal.screen()}"
        )
        daemon.kill()
        await terminal.expect("that the connection is lost", lambda screen: table["lost"] in screen)
        made.unlink()
        await daemon.restart()
        await terminal.expect(
            "that it is connected again",
            lambda screen: screen.rfind(table["connected"]) > screen.rfind(table["lost"]),
            seconds=RECONNECT_S,
        )
        # Whatever the client sends again is answered before this.
        typed = daemon.echo_of(f"after {token}")
        await terminal.enter(typed)
        screen = await terminal.expect(
            "an answer after the drop", answered(f"after {token}", typed), seconds=RECONNECT_S
        )

        assert not made.exists(), (
            f"contract 9: {command!r} was run before the connection dropped, and nobody asked for it "
            f"again: expected no second run, found {made.name} made anew:\n{screen}"
        )


#: Lines that are typed faster than they are answered: more than a connection's queue holds.
TYPED = 40

#: And before there is a daemon: as many as a client keeps that keeps a hundred.
EARLY = 90


@pytest.mark.capability("echo")
async def test_begins_before_the_daemon(run, start, token: str) -> None:
    """It waits for a daemon that is not there yet, evaluates meanwhile, and is connected when it is.

    Stopped and started, the daemon is the same to it; what is typed at once is answered in its order.
    """
    async with start(Settings(same_port=True)) as daemon:
        table = daemon.subject.table("tui")
        await daemon.stop()
        argv = daemon.client("tui")
        async with open_terminal(run, argv, environment=daemon.environment()) as terminal:
            await terminal.expect(
                "its prompt without a daemon", lambda screen: table["prompt"] in screen
            )
            first, second = random.randrange(10_000, 99_999), random.randrange(10_000, 99_999)
            await terminal.enter(f"/eval (+ {first} {second})")
            screen = await terminal.expect(
                "the value of an expression without a daemon",
                lambda screen: str(first + second) in screen,
            )

            assert table["connected"] not in screen, (
                f"contract 9: no daemon is there, and it shows that it is connected:\n{screen}"
            )
            early = [f"e{number:02}-{token}" for number in range(EARLY)]
            await terminal.enter("\n".join(daemon.echo_of(word) for word in early))
            await expect_calls(daemon.port, CALLS)
            await daemon.start()
            await terminal.expect(
                "that it is connected to the daemon that came later",
                lambda screen: table["connected"] in screen,
                seconds=RECONNECT_S,
            )
            await expect_each(terminal, daemon, early)
            await daemon.stop()
            await terminal.expect(
                "that the daemon has stopped", lambda screen: table["lost"] in screen
            )
            await daemon.start()
            await terminal.expect(
                "that it is connected after a stop",
                lambda screen: screen.rfind(table["connected"]) > screen.rfind(table["lost"]),
                seconds=RECONNECT_S,
            )
            words = [f"n{number:02}-{token}" for number in range(TYPED)]
            await terminal.enter("\n".join(daemon.echo_of(word) for word in words))
            await expect_each(terminal, daemon, words)
            await daemon.stop()
            await terminal.expect(
                "that the daemon has stopped again",
                lambda screen: screen.rfind(table["lost"]) > screen.rfind(table["connected"]),
            )
            await terminal.enter("/quit")
            with trio.move_on_after(patience(RECONNECT_S)):
                await until(terminal.ended)

            assert await terminal.ended(), (
                f"contract 9: /quit ends it without a daemon too, found:\n{await terminal.screen()}"
            )
        await daemon.start()
        expect_health(await daemon.health())


async def expect_each(terminal: Terminal, daemon: Daemon, words: list[str]) -> None:
    """Each of the words that were typed at once to be echoed is answered once, in their order."""
    screen = await terminal.expect(
        f"the answers to {len(words)} lines",
        lambda screen: all(answered(word, daemon.echo_of(word))(screen) for word in words),
        seconds=RECONNECT_S,
    )
    lines = [
        line
        for line in screen.splitlines()
        if not any(daemon.echo_of(word) in line for word in words)
    ]
    found = [word for line in lines for word in words if word in line]

    assert found == words, (
        f"contract 9: each of {len(words)} lines is answered once, in their order; found {found}"
    )


async def expect_calls(port: int, times: int) -> None:
    """Something that is no daemon listens and hangs up; the client comes again so many times."""
    calls = 0
    (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    async with listener:
        with trio.move_on_after(patience(RECONNECT_S)):
            while calls < times:
                stream = await listener.accept()
                await stream.aclose()
                calls += 1

    assert calls >= times, (
        f"contract 9: the client tries again and again: expected {times} connections, found {calls}"
    )


@pytest.mark.capability("echo")
@pytest.mark.knob("frame_characters")
async def test_after_a_text_that_is_too_long_the_next_is_answered(run, start, token: str) -> None:
    """A text that is too long for the daemon costs a connection, and the client comes back by itself."""
    settings = Settings(same_port=True, knobs={"frame_characters": LONGEST})
    async with start(settings) as daemon, tui(run, daemon) as terminal:
        table = daemon.subject.table("tui")
        await terminal.enter(daemon.echo_of("x" * LONGEST))
        await terminal.expect("that the connection is lost", lambda screen: table["lost"] in screen)
        # Of the daemon's error LOG, which comes before the end, its user learns what was wrong.
        await terminal.expect(
            "the reason that the daemon gave",
            lambda screen: (
                re.search(rf"malformed|too l(ong|arge)|\b{LONGEST}\b", screen) is not None
            ),
        )
        await terminal.expect(
            "that it is connected again",
            lambda screen: screen.rfind(table["connected"]) > screen.rfind(table["lost"]),
            seconds=RECONNECT_S,
        )
        typed = daemon.echo_of(token)
        await terminal.enter(typed)
        await terminal.expect(
            f"an answer after a text of more than {LONGEST} characters",
            answered(token, typed),
            seconds=RECONNECT_S,
        )
        expect_health(await daemon.health())


async def test_quits(run, daemon: Daemon) -> None:
    """/quit ends the client, and the daemon sees one connection less."""
    before = daemon.vitals().descriptors
    async with tui(run, daemon) as terminal:
        await terminal.enter("/quit")
        with trio.move_on_after(patience(10)):
            await until(terminal.ended)

        assert await terminal.ended(), f"still running:\n{await terminal.screen()}"

        async def let_go() -> bool:
            return daemon.vitals().descriptors <= before

        with trio.move_on_after(patience(10)):
            await until(let_go)
    assert daemon.vitals().descriptors <= before, "the client's connection is still held"


def _lines_with(screen: str, token: str, typed: str) -> int:
    """Lines with a token, but for what the terminal itself echoes of a text typed before its prompt."""
    return sum(token in line and line.strip() != typed for line in screen.splitlines())
