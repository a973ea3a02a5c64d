"""The vocabulary. Plain values: a row holds them, a file spells them, the gateway plays them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "UNLESS",
    "Ask",
    "Fail",
    "Given",
    "Obey",
    "ResultOf",
    "Route",
    "Say",
    "Turn",
    "Use",
    "ask",
    "fail",
    "given",
    "is_turn",
    "obey",
    "result",
    "route",
    "say",
    "use",
]

#: What keeps a gullible model from obeying: the message stands inside the prompt's quotation; it
#: stands there and the prompt warns that it is data; nothing.
UNLESS: Final = ("quoted", "warned", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The message, or a part of it, is for one target.

    Attributes:
        target: its name in the registry of the prompt.
        prompt: the part of the message that it is given; empty for the whole message.
    """

    target: str
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOf:
    """Stands for an argument that an earlier tool has answered.

    Attributes:
        tool: the tool, by its bare name.
        at: where in its answer: keys and positions, separated by dots.
    """

    tool: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One call of a tool of the system under test, by the tool's bare name."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """The model's last words."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The model does nothing more and asks the person back."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The provider answers this turn with an error.

    Attributes:
        status: the HTTP status.
    """

    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Turns that the model knows to do only when the prompt says something.

    Attributes:
        text: what must stand somewhere in the request.
    """

    text: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obey:
    """What a gullible model does besides, or instead, when the message gives it orders.

    Attributes:
        unless: what keeps it from obeying, one of :data:`UNLESS`.
    """

    turns: tuple[Turn, ...]
    unless: str = "quoted"


#: A tuple of calls is made in one answer.
Turn = Route | Use | tuple[Use, ...] | Say | Ask | Fail | Given | Obey


def is_turn(value: object) -> bool:
    """Whether something is a turn, or a tuple of calls."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(each, Use) for each in value)
    return isinstance(value, Route | Use | Say | Ask | Fail | Given | Obey)


def route(target: str, prompt: str = "") -> Route:
    """Hand the message, or a part of it, to one target; the turns that follow are this target's."""
    return Route(target=target, prompt=prompt)


def use(tool: str, /, **arguments: Any) -> Use:
    """Call a tool; several in one tuple are called in one answer."""
    return Use(tool=tool, arguments=arguments)


def result(tool: str, at: str) -> ResultOf:
    """An argument: what an earlier tool has answered, e.g. ``result("contact_create", "id")``."""
    return ResultOf(tool=tool, at=at)


def say(text: str) -> Say:
    """End with these words; without it the model ends by saying which tools it used."""
    return Say(text=text)


def ask(text: str) -> Ask:
    """End with a question to the person, and do nothing."""
    return Ask(text=text)


def fail(status: int) -> Fail:
    """The provider fails at this turn, whenever it is asked for it."""
    return Fail(status=status)


def given(text: str, *turns: Turn | Sequence[Use]) -> Given:
    """Do this only when the prompt holds a text; without it the model does not know to."""
    return Given(text=text, turns=tuple(_turn(each) for each in turns))


def obey(*turns: Turn | Sequence[Use], unless: str = "quoted") -> Obey:
    """Do this, too, when the orders in the message get through to the model.

    Args:
        turns: what it then does; a :func:`route` among them replaces the honest ones.
        unless: ``quoted``: it does not when all of the message stands inside the quotation of the
            prompt; ``warned``: nor does it when, besides, the prompt says that this is data;
            ``never``: it does in any case, so that what lies behind the prompt is judged.
    """
    return Obey(turns=tuple(_turn(each) for each in turns), unless=unless)


def _turn(turn: Turn | Sequence[Use]) -> Turn:
    return tuple(turn) if isinstance(turn, list) else turn  # type: ignore[return-value]
