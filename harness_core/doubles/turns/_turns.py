"""The vocabulary. Plain values: a row holds them, a file spells them, the gateway plays them.

Each class is a table of a file as it stands: its fields are renamed to the words of docs/how-to/gateway.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, structs

from harness_core.base.reading import Misfit, Step, Table, parse

_Text = Annotated[str, Meta(min_length=1)]


class Route(Table, frozen=True, kw_only=False, rename={"target": "route"}, omit_defaults=True):
    """Hand the message, or a part of it, to one target; the turns that follow are this target's.

    Attributes:
        target: its name in the registry of the prompt.
        prompt: the part of the message that it is given; empty for the whole message.
    """

    target: _Text
    prompt: str = ""


class ResultOf(Table, frozen=True, kw_only=False, rename={"tool": "result_of"}):
    """An argument: what an earlier tool has answered, e.g. ``result("contact_create", "id")``.

    Attributes:
        tool: the tool, by its bare name.
        at: where in its answer: keys and positions, separated by dots.
    """

    tool: str
    at: str


class Use(Table, frozen=True, rename={"tool": "use", "arguments": "with"}):
    """One call of a tool of the system under test, by the tool's bare name."""

    tool: _Text
    arguments: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        structs.force_setattr(self, "arguments", _with_results(self.arguments))


class Say(Table, frozen=True, kw_only=False, rename={"text": "say"}):
    """End with these words; without it the model ends with the tools that it used."""

    text: str


class Ask(Table, frozen=True, kw_only=False, rename={"text": "ask"}):
    """End with a question to the person, and do nothing."""

    text: _Text


class Fail(Table, frozen=True, kw_only=False, rename={"status": "fail"}):
    """The provider fails at this turn, whenever it is asked for it.

    Attributes:
        status: the HTTP status.
    """

    status: Annotated[int, Meta(ge=400, le=599, description="a status, 400 to 599")]


class Given(Table, frozen=True, rename={"text": "given"}):
    """Turns that the model knows to do only when the prompt says something.

    Attributes:
        text: what must stand somewhere in the request.
        turns: of type :data:`Turn`.
    """

    text: _Text
    turns: tuple[Any, ...]

    def __post_init__(self) -> None:
        structs.force_setattr(self, "turns", read_turns(self.turns, "turns"))


class Obey(Table, frozen=True, rename={"turns": "obey"}):
    """What a gullible model does besides, or instead, when the message gives it orders.

    Attributes:
        turns: of type :data:`Turn`.
        unless: what keeps it from obeying: the message stands inside the prompt's quotation
            (``quoted``); it stands there and the prompt warns that it is data (``warned``);
            nothing (``never``).
    """

    turns: tuple[Any, ...]
    unless: Literal["quoted", "warned", "never"] = "quoted"

    def __post_init__(self) -> None:
        structs.force_setattr(self, "turns", read_turns(self.turns, "obey"))


#: A tuple of calls is made in one answer.
Turn = Route | Use | tuple[Use, ...] | Say | Ask | Fail | Given | Obey

#: The word that names a turn → the turn.
_KINDS: Final[Mapping[str, type]] = {
    "route": Route,
    "use": Use,
    "say": Say,
    "ask": Ask,
    "fail": Fail,
    "given": Given,
    "obey": Obey,
}


def is_turn(value: object) -> bool:
    """Whether something is a turn, or a tuple of calls."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(each, Use) for each in value)
    return isinstance(value, tuple(_KINDS.values()))


def read_turns(turns: Sequence[Any], *at: Step) -> tuple[Turn, ...]:
    """Turns, of which those that are spelt as tables and lists are read.

    Raises:
        Misfit: the first that is no turn, with its place after ``at``.
    """
    return tuple(_read(turn, (*at, number)) for number, turn in enumerate(turns))


def _read(turn: Any, at: tuple[Step, ...]) -> Turn:
    if is_turn(turn):
        return turn  # type: ignore[no-any-return]
    if isinstance(turn, list):
        calls = read_turns(turn, *at)
        if not is_turn(calls):
            raise Misfit(*at, expected="calls of tools, and nothing else")
        return calls  # type: ignore[return-value]
    words = [word for word in _KINDS if isinstance(turn, Mapping) and word in turn]
    if len(words) != 1:
        raise Misfit(*at, expected=f"one of {', '.join(_KINDS)}")
    return parse(turn, _KINDS[words[0]], at=at)


def _with_results(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"result_of", "at"}:
            return ResultOf(tool=str(value["result_of"]), at=str(value["at"]))
        return {key: _with_results(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_results(inner) for inner in value]
    return value


#: A row spells its turns as calls; so do those below, which take any number of arguments.
route = Route
result = ResultOf
say = Say
ask = Ask
fail = Fail


def use(tool: str, /, **arguments: Any) -> Use:
    """Call a tool; several in one tuple are called in one answer."""
    return Use(tool=tool, arguments=arguments)


def given(text: str, *turns: Turn | Sequence[Use]) -> Given:
    """Do this only when the prompt holds a text; without it the model does not know to."""
    return Given(text=text, turns=turns)


def obey(
    *turns: Turn | Sequence[Use], unless: Literal["quoted", "warned", "never"] = "quoted"
) -> Obey:
    """Do this, too, when the orders in the message get through to the model.

    Args:
        turns: what it then does; a :func:`route` among them replaces the honest ones.
        unless: ``quoted``: it does not when all of the message stands inside the quotation of the
            prompt; ``warned``: nor does it when, besides, the prompt says that this is data;
            ``never``: it does in any case, so that what lies behind the prompt is judged.
    """
    return Obey(turns=turns, unless=unless)
