"""Three language models to be asked, and what each of them was asked.

Recorders are a stand-in for three model providers that differ in everything: what arrived where, with
which headers and which body, is on record.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness_core.base.evidence import REDACTED
from harness_core.base.slowness import patience
from harness_core.doubles.http import Answer, Recorded, Recorder, Rule
from suites.daemon.daemon import Daemon, Provider, Settings
from suites.daemon.messages import ask, expect_message, user_input
from suites.daemon.vitals import below

__all__ = [
    "ANSWER_S",
    "KEYS",
    "LATER_S",
    "MODELS",
    "SOON_S",
    "WELL",
    "Cast",
    "asking",
    "completion",
    "expect_cascade",
    "expect_no_secret",
    "expect_own",
    "files_of",
    "message",
]


#: The first gives up soon, the others wait for what the first would not.
SOON_S: Final = 0.4


LATER_S: Final = 20.0


ANSWER_S: Final = 40.0


KEYS: Final = {
    "alpha": "zq7alphaXk41Wm",
    "beta": "vv9betaRt82Lp",
    "gamma": "hh3gammaUo57Cs",
}


MODELS: Final = {"alpha": "model-a-1", "beta": "model-b-2", "gamma": "model-c-3"}


def message(text: object, **changes: Any) -> Answer:
    """An answer of the Messages API."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return Answer(json=body | changes)


def completion(text: object) -> Answer:
    """An answer of chat completions."""
    said = {"role": "assistant", "content": text}
    return Answer(json={"id": "c", "choices": [{"index": 0, "message": said}]})


#: How each provider answers a text.
WELL: Final[dict[str, Callable[[str], Answer]]] = {
    "alpha": message,
    "beta": completion,
    "gamma": message,
}


@dataclass(slots=True)
class Cast:
    """Three providers, and how each of them answers now: always so, or as it is asked."""

    answers: dict[str, Answer] = field(default_factory=dict)
    recorders: tuple[Recorder, ...] = ()
    respond: dict[str, Callable[[Recorded], Answer]] = field(default_factory=dict)

    def rules(self, **paths: str) -> list[Rule]:
        """Rules for a recorder: name of a provider → path."""

        def answer(name: str) -> Callable[[Recorded], Answer]:
            return lambda request: (
                self.respond[name](request) if name in self.respond else self.answers[name]
            )

        return [
            Rule(path=path, method="POST", answer=answer(name), name=name)
            for name, path in paths.items()
        ]

    def asked(self, since: int) -> list[Recorded]:
        """What was asked since so many requests, in order of arrival."""
        requests = [request for each in self.recorders for request in each.requests]
        return sorted(requests, key=lambda request: request.arrived_at)[since:]


@asynccontextmanager
async def asking(start, cast: Cast, order: str) -> AsyncIterator[Daemon]:
    """A daemon that asks them in this order of first letters."""
    first, second = cast.recorders
    every = {
        "a": Provider(
            name="alpha",
            shape="anthropic",
            url=first.url,
            key=KEYS["alpha"],
            model=MODELS["alpha"],
            timeout_s=patience(SOON_S),
        ),
        "b": Provider(
            name="beta",
            shape="openai",
            url=f"{second.url}/",
            key=KEYS["beta"],
            model=MODELS["beta"],
            timeout_s=patience(LATER_S),
        ),
        "g": Provider(
            name="gamma",
            shape="anthropic",
            url=f"{second.url}/third",
            key=KEYS["gamma"],
            model=MODELS["gamma"],
            timeout_s=patience(LATER_S),
        ),
    }
    async with start(Settings(providers=[every[letter] for letter in order])) as daemon:
        yield daemon


async def expect_cascade(daemon: Daemon, cast: Cast, question: str, *, by: str, order: list[str]):
    """A question is answered by one provider after those before it, each asked as it should be."""
    since = len(cast.asked(0))
    async with daemon.connect() as connection:
        answer = await ask(connection, user_input(question), seconds=ANSWER_S)
        reply = expect_message(answer, connection)
        explanation = str(answer.get("PAYLOAD", "EXPLANATION"))
    requests = cast.asked(since)
    found = [request.rule for request in requests]

    assert found == order, f"contract 8: expected {order} to be asked in this order, found {found}"
    for request in requests:
        expect_own(request, question)
    assert f"says {by}" in reply, (
        f"contract 8: expected the answer of {by}, found {reply[:200]!r} ({explanation[:300]})"
    )
    leaked = [name for name, key in KEYS.items() if key in answer.payload]

    assert not leaked, (
        f"contract 8: a key is in no frame: expected none, found those of {leaked} in "
        f"{answer.payload[:600]}"
    )
    lost = [name for name in order if name not in explanation]

    assert not lost, f"contract 8: the explanation does not name {lost}: {explanation!r}"
    return explanation


def expect_own(request: Recorded, question: str) -> None:
    """A request bears its provider's key and model and no other's, and the whole question."""
    name = request.rule
    header = "authorization" if name == "beta" else "x-api-key"
    wanted = f"Bearer {KEYS[name]}" if name == "beta" else KEYS[name]

    assert request.header(header) == wanted, (
        f"contract 8: {name} is asked with its own key in {header}, found "
        f"{sorted(n for n, _ in request.headers)} and a key of "
        f"{[n for n, key in KEYS.items() if key in request.header(header)] or 'no one'}"
    )
    others = [key for key in KEYS.values() if key != KEYS[name]]
    whole = str(request.headers) + request.text + request.target

    assert not any(key in whole for key in others), f"contract 8: {name} got another's key"
    body = request.json()

    assert body.get("model") == MODELS[name], (
        f"contract 8: {name} is asked for its model {MODELS[name]}, found {body.get('model')!r}"
    )
    said = [each for each in body.get("messages", []) if each.get("role") == "user"]

    assert [each.get("content") for each in said] == [question], (
        f"contract 8: {name} is asked {question!r}, found {json.dumps(body)[:600]}"
    )
    assert isinstance(body.get("max_tokens"), int), (
        f"contract 8: {name} is told how much to answer, found {json.dumps(body)[:300]}"
    )
    assert "application/json" in request.header("content-type"), (
        f"contract 8: {name} is asked in JSON, found {request.header('content-type')!r}"
    )
    if name != "beta":
        assert request.header("anthropic-version"), f"contract 8: {name} is told no version"


def expect_no_secret(daemon: Daemon) -> None:
    """No key is in the daemon's log, its files, or the command line of any of its processes."""
    log = daemon.child.log.read_text(encoding="utf-8", errors="replace")
    places = {"its log": log, **files_of(daemon.home)}
    for pid in (daemon.pid, *below(daemon.pid)):
        places[f"the command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_text()
    leaked = [
        f"the key of {name} in {place}"
        for name, key in KEYS.items()
        for place, text in places.items()
        if key in text
    ]
    # What is shaped like a secret, the harness blots out of the log it keeps.
    if REDACTED in log:
        leaked += [line for line in log.splitlines() if REDACTED in line][:3]

    assert not leaked, f"contract 8: secrets have leaked: {leaked}"


def files_of(home: Path) -> dict[str, str]:
    """The text of every file below a home."""
    return {
        str(path): path.read_text(encoding="utf-8", errors="replace")
        for path in home.rglob("*")
        if path.is_file()
    }
