"""Contract 8: a key of a language model is looked for wherever it could have leaked, and is nowhere.

Recorders are a stand-in for three model providers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import pytest
import trio

from harness_core.base.evidence import REDACTED
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.doubles.http import Answer, Recorded, Rule, open_recorder
from harness_core.ports import listeners
from harness_core.process import Child, Run
from suites.daemon.asked_models import (
    ANSWER_S,
    KEYS,
    LATER_S,
    WELL,
    Cast,
    asking,
    completion,
)
from suites.daemon.daemon import Daemon, Provider, Settings
from suites.daemon.messages import ask, expect_health, expect_message, user_input
from suites.daemon.vitals import below

pytestmark = [pytest.mark.covers("CONTRACT-8-PROVIDERS"), pytest.mark.capability("providers")]


async def test_what_is_secret_in_an_address_is_shown_nowhere(start, evidence, token: str) -> None:
    """A password or a token in the address of a provider is in no frame, log or error."""
    secrets = ("pp4passWq81Zd", "tt6tokenLm27Bv")
    # None of them answers the first question, and the last one answers the second.
    answered = completion(f"well {token}")

    def answer(request: Recorded) -> Answer:
        return answered if f"1 {token}" in request.text else Answer(status=500)

    async with (
        open_recorder("secretive", evidence=evidence) as there,
        open_recorder("sound", evidence=evidence, rules=[Rule(path="/**", answer=answer)]) as last,
    ):
        order = [
            Provider(
                name=name,
                shape=shape,
                url=f"http://u:{secrets[0]}@127.0.0.1:{port}/{secrets[1]}",
                key=KEYS["alpha"],
                model="m",
                timeout_s=LATER_S,
            )
            for name, shape, port in (
                ("alpha", "anthropic", 1),
                ("beta", "openai", there.port),
                ("gamma", "openai", last.port),
            )
        ]
        async with start(Settings(providers=order)) as daemon, daemon.connect() as connection:
            said: dict[str, str] = {}
            for number in range(2):
                form = user_input(f"{number} {token}")
                found = await ask(connection, form, seconds=ANSWER_S)

                assert (f"well {token}" in expect_message(found, connection)) == (number == 1), (
                    f"contract 8: the last provider fails the first question and answers the second: "
                    f"found for question {number}: {found.payload}"
                )
                said[f"answer {number}"] = found.payload
            health = await daemon.health()
            expect_health(health)
            said["its health"] = health.payload
            said["its log"] = daemon.child.log.read_text(encoding="utf-8", errors="replace")
        asked = len(there.requests)
    leaked = [f"{where}: {line}" for where, text in said.items() for line in shown(text, secrets)]

    assert asked >= 1, f"contract 8: the provider that is there is asked, found {said}"
    assert not leaked, "contract 8: a secret is shown nowhere, found:\n" + "\n".join(leaked)


#: Keys that no HTTP header can carry, as they are pasted or read from a file: what is around and
#: within a real one.
UNSENDABLE: Final = {
    "a newline behind": "{}{}\n",
    "a newline before": "\n{}{}",
    "a carriage return behind": "{}{}\r\n",
    "a newline within": "{}\n{}",
    "a letter of Latin-1": "{}é{}",
    "a letter of no European alphabet": "{}日{}",
    "a control character": "{}\x01{}",
}


@asynccontextmanager
async def started(daemon: Daemon, settings: Settings) -> AsyncIterator[bool]:
    """Another life of a daemon, with other settings; whether it started with them."""
    daemon.settings = settings
    try:
        await daemon.restart()
    except AssertionError as error:
        if error.__cause__ is None:
            raise
        yield False
    else:
        yield True


def shown(text: str, secrets: Iterable[str]) -> list[str]:
    """The lines of a text that hold a secret, or of which the harness has blotted one out."""
    words = (*secrets, REDACTED)
    return [line[:300] for line in text.splitlines() if any(word in line for word in words)]


async def test_a_key_that_cannot_be_sent_is_shown_nowhere(start, cast: Cast, token: str) -> None:
    """A key that no header can carry is in no frame, log or error.

    It is refused at the start, or its provider is passed over or asked with what is sound of it.
    """
    cast.answers = {name: WELL[name](f"This says {name}: {token}.") for name in WELL}
    leaked: list[str] = []
    async with asking(start, cast, "abg") as daemon:
        sound = daemon.settings
        for what, spelled in UNSENDABLE.items():
            halves = {name: (key[:7], key[7:]) for name, key in KEYS.items()}
            providers = [
                each
                if each.name == "gamma"
                else replace(each, key=spelled.format(*halves[each.name]))
                for each in sound.providers
            ]
            secrets = [*halves["alpha"], *halves["beta"]]
            async with started(daemon, replace(sound, providers=providers)) as runs:
                if runs:
                    async with daemon.connect() as connection:
                        question = user_input(f"What of {what}, {token}?")
                        answer = await ask(connection, question, seconds=ANSWER_S)
                        reply = expect_message(answer, connection)

                    assert any(f"says {name}" in reply for name in WELL), (
                        f"contract 8: {what} in a key: expected the provider to be passed over, "
                        f"found {reply[:200]!r} ({answer.payload[:400]})"
                    )
                    leaked += [f"{what}: {line}" for line in shown(answer.payload, secrets)]
                log = daemon.child.log.read_text(encoding="utf-8", errors="replace")
                leaked += [f"{what}: {line}" for line in shown(log, secrets)]
        async with started(daemon, sound) as runs:
            assert runs, "contract 1: a sound configuration after others is started with"

    assert not leaked, "contract 8: a key is shown nowhere, found:\n" + "\n".join(leaked)


def misspelled(variable: str) -> list[str]:
    """The name of a variable with a letter too many in each of its words, or one missing at its end."""
    words = variable.split("_")
    plural = ["_".join([*words[:n], f"{word}S", *words[n + 1 :]]) for n, word in enumerate(words)]
    return [*plural, variable[:-1], variable.replace("_", "__", 1)]


async def test_a_misplaced_key_is_shown_nowhere(start, run) -> None:
    """A key in a variable whose name is misspelled, or in one beside its own, is in no error."""
    async with start() as daemon:
        await expect_unshown(daemon, run, KEYS["alpha"])
        expect_health(await daemon.health())


async def expect_unshown(daemon: Daemon, run: Run, secret: str) -> None:
    """A key in a variable of nearly the right name is in nothing that a start prints."""
    table = daemon.subject.table("providers")
    holders = [
        daemon.fill(name, NAME="ALPHA", name="alpha")
        for name, value in table["each"].items()
        if "{key}" in value
    ]
    tried = [{name: secret} for holder in holders for name in misspelled(holder)]
    sound = {
        "name": "alpha",
        "NAME": "ALPHA",
        "shape": "anthropic",
        "url": "http://127.0.0.1:9",
        "key": "k",
        "model": "m",
        "timeout_s": "5",
    }
    each = {daemon.fill(k, **sound): daemon.fill(v, **sound) for k, v in table["each"].items()}
    order = {daemon.fill(k): daemon.fill(v, names="alpha") for k, v in table["env"].items()}
    # In the place of each of its neighbours: alone, behind what belongs there, and before it.
    tried += [
        {**order, **each, name: text}
        for name, own in (order | each).items()
        if name not in holders
        for text in (secret, f"{own}{secret}", f"{secret}{own}", f"{own} {secret}", f" {secret}")
    ]
    leaked: list[str] = []
    waiting = iter(tried)

    async def one(client: str) -> None:
        for number, variables in enumerate(waiting):
            name = f"misplaced-{client}-{number}"
            another = daemon.process(run, name=name, port=0, variables=variables)
            async with another as child:

                async def told(child=child) -> bool:
                    return child.returncode is not None or listens(child)

                with trio.move_on_after(patience(ANSWER_S)):
                    await until(told)
            text = child.log.read_text(encoding="utf-8", errors="replace")
            holding = [name for name, value in variables.items() if secret in value]
            leaked.extend(f"{' '.join(holding)}: {line}" for line in shown(text, [secret]))

    async with trio.open_nursery() as nursery:
        for client in "ab":
            nursery.start_soon(one, client)

    assert not leaked, "contract 8: a key is in no error, found:\n" + "\n".join(leaked)


def listens(child: Child) -> bool:
    """Whether a process or one of those below it listens."""
    ours = {child.pid, *below(child.pid)}
    return any(row.pid in ours for row in listeners())
