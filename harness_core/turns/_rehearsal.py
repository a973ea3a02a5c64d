"""A message and the turns that a model takes for it; as a value, as JSON and as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness_core.errors import BadInput
from harness_core.turns._message import Message, fill_in
from harness_core.turns._turns import (
    UNLESS,
    Ask,
    Fail,
    Given,
    Obey,
    ResultOf,
    Route,
    Say,
    Turn,
    Use,
)

__all__ = ["Rehearsal", "read_rehearsals"]

#: Key of a turn → the other keys it may have.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "route": ("prompt",),
    "use": ("with",),
    "say": (),
    "ask": (),
    "fail": (),
    "given": ("turns",),
    "obey": ("unless",),
}

_STATUSES: Final = range(400, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A message and its turns.

    Attributes:
        message: what the prompt must hold; may have placeholders, ``{token}`` or ``{dose:number}``.
        turns: in order. Those after a :class:`Route` are done by the session of its target, those
            before the first one by whichever session is given the message.
        name: what findings call it.
    """

    message: str
    turns: tuple[Turn, ...]
    name: str = ""

    def filled(self, text: str) -> Rehearsal | None:
        """This rehearsal for one very text; ``None`` when the text is another message."""
        values = Message(text=self.message).match(text)
        return None if values is None else replace(self.with_values(values), message=text)

    def with_values(self, values: Mapping[str, Any]) -> Rehearsal:
        """This rehearsal with its placeholders filled."""
        message = str(fill_in(self.message, values))
        return Rehearsal(message=message, turns=fill_in(self.turns, values), name=self.name)

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire, and as TOML spells it."""
        turns = [_turn_json(turn) for turn in self.turns]
        return {"name": self.name, "message": self.message, "turns": turns}

    @classmethod
    def from_json(cls, body: object, *, where: str = "rehearsal", at: str = "") -> Rehearsal:
        """Read one.

        Raises:
            BadInput: names the turn and the key that is wrong.
        """
        if not isinstance(body, Mapping):
            raise BadInput(where, key=at, found=body, expected="a table with message and turns")
        prefix = f"{at}." if at else ""
        for key in body:
            if key not in ("name", "message", "turns"):
                expected = "name, message or turns"
                raise BadInput(where, key=f"{prefix}{key}", found=body[key], expected=expected)
        for key in ("name", "message"):
            if not isinstance(body.get(key, ""), str):
                raise BadInput(where, key=f"{prefix}{key}", found=body[key], expected="a text")
        if "message" not in body:
            raise BadInput(where, key=f"{prefix}message", found=None, expected="what is said")
        return cls(
            name=body.get("name", ""),
            message=body["message"],
            turns=_turns(body.get("turns"), where=where, at=f"{prefix}turns"),
        )


def read_rehearsals(path: Path) -> tuple[Rehearsal, ...]:
    """Read a file of rehearsals: ``[[rehearsal]]`` tables with ``message`` and ``turns``.

    Raises:
        BadInput: the file cannot be read, or a turn of it is wrong.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(path, found=str(error), expected="a TOML file of rehearsals") from error
    rows = body.get("rehearsal")
    if not isinstance(rows, list) or not rows or len(body) > 1:
        raise BadInput(
            path, key="rehearsal", found=sorted(body), expected="[[rehearsal]] tables, nothing else"
        )
    return tuple(
        Rehearsal.from_json(row, where=str(path), at=f"rehearsal[{number}]")
        for number, row in enumerate(rows)
    )


def _turn_json(turn: Turn) -> Any:  # noqa: PLR0911 - one per word
    if isinstance(turn, tuple):
        return [_turn_json(each) for each in turn]
    if isinstance(turn, Route):
        return {"route": turn.target} | ({"prompt": turn.prompt} if turn.prompt else {})
    if isinstance(turn, Use):
        return {"use": turn.tool, "with": _argument_json(turn.arguments)}
    if isinstance(turn, Say):
        return {"say": turn.text}
    if isinstance(turn, Ask):
        return {"ask": turn.text}
    if isinstance(turn, Fail):
        return {"fail": turn.status}
    inner = [_turn_json(each) for each in turn.turns]
    if isinstance(turn, Given):
        return {"given": turn.text, "turns": inner}
    return {"obey": inner, "unless": turn.unless}


def _argument_json(value: Any) -> Any:
    if isinstance(value, ResultOf):
        return {"result_of": value.tool, "at": value.at}
    if isinstance(value, Mapping):
        return {key: _argument_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_argument_json(inner) for inner in value]
    return value


def _turns(value: object, *, where: str, at: str) -> tuple[Turn, ...]:
    if not isinstance(value, list):
        raise BadInput(where, key=at, found=value, expected="a list of turns")
    return tuple(_turn(each, where=where, at=f"{at}[{n}]") for n, each in enumerate(value))


def _turn(body: object, *, where: str, at: str) -> Turn:
    if isinstance(body, list):
        uses = _turns(body, where=where, at=at)
        calls = tuple(each for each in uses if isinstance(each, Use))
        if not calls or len(calls) != len(uses):
            raise BadInput(where, key=at, found=body, expected="calls of tools, and nothing else")
        return calls
    word = _word(body, where=where, at=at)
    assert isinstance(body, Mapping)
    if word in ("fail", "obey", "given"):
        return _special(word, body, where=where, at=at)
    value = body[word]
    if not isinstance(value, str) or (not value and word != "say"):
        raise BadInput(where, key=f"{at}.{word}", found=value, expected="a text")
    if word == "route":
        prompt = body.get("prompt", "")
        if not isinstance(prompt, str):
            raise BadInput(where, key=f"{at}.prompt", found=prompt, expected="a text")
        return Route(target=value, prompt=prompt)
    if word == "use":
        arguments = body.get("with", {})
        if not isinstance(arguments, Mapping):
            raise BadInput(where, key=f"{at}.with", found=arguments, expected="a table")
        return Use(tool=value, arguments=_arguments(arguments))
    return Say(text=value) if word == "say" else Ask(text=value)


def _special(word: str, body: Mapping[str, Any], *, where: str, at: str) -> Turn:
    """A turn that fails, is known to be done only sometimes, or obeys."""
    value = body[word]
    if word == "fail":
        if not isinstance(value, int) or value not in _STATUSES:
            raise BadInput(where, key=f"{at}.fail", found=value, expected="a status, 400 to 599")
        return Fail(status=value)
    if word == "obey":
        unless = body.get("unless", "quoted")
        if unless not in UNLESS:
            expected = " or ".join(UNLESS)
            raise BadInput(where, key=f"{at}.unless", found=unless, expected=expected)
        return Obey(turns=_turns(value, where=where, at=f"{at}.obey"), unless=unless)
    if not isinstance(value, str) or not value:
        raise BadInput(where, key=f"{at}.given", found=value, expected="a text")
    return Given(text=value, turns=_turns(body.get("turns"), where=where, at=f"{at}.turns"))


def _word(body: object, *, where: str, at: str) -> str:
    words = [word for word in _WORDS if isinstance(body, Mapping) and word in body]
    if len(words) != 1 or not isinstance(body, Mapping):
        raise BadInput(where, key=at, found=body, expected=f"one of {', '.join(_WORDS)}")
    for key in body:
        if key != words[0] and key not in _WORDS[words[0]]:
            expected = " or ".join(_WORDS[words[0]]) or f"nothing beside {words[0]}"
            raise BadInput(where, key=f"{at}.{key}", found=body[key], expected=expected)
    return words[0]


def _arguments(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"result_of", "at"}:
            return ResultOf(tool=str(value["result_of"]), at=str(value["at"]))
        return {key: _arguments(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_arguments(inner) for inner in value]
    return value
