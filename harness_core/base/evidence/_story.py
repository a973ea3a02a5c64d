"""What a test saw, as rows that any reader can draw: links of a chain, frames, sides, curves.

A suite tells them as it goes: ``tell(lambda: [Frame(…)])``. Nothing is rendered, and nothing written,
before the test has failed or ``--report`` asks for the stories of all; then they are the lines of
``story.jsonl`` among its evidence. Source: ``docs/how-to/report.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec

#: The file among a test's evidence.
STORY: Final = "story.jsonl"

#: Of one test, the last so many are kept: a test may open thousands of connections.
_KEPT: Final = 200


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="message"):
    """Something that was sent on a way through several processes.

    Attributes:
        id: by which links name it.
        text: what was sent.
        at: when, in seconds since 1970.
        names: what belongs to it carries one of these: trace ids, request ids, session ids, tokens.
    """

    id: str
    text: str
    at: float = 0.0
    names: tuple[str, ...] = ()


class Link(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="link"):
    """One step of a message's way.

    Attributes:
        message: its id.
        source: where the step begins.
        target: where it ends.
        label: what the step is, e.g. ``routing_log``.
        state: ``held``; ``broken``, where the chain ends; ``missing``, of which nothing was seen.
        said: what was seen of it.
    """

    message: str
    source: str
    target: str
    label: str = ""
    state: Literal["held", "broken", "missing"] = "held"
    said: str = ""


class Moment(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="moment"):
    """Something that happened at a known time: a row that was written, an event, a transition.

    Attributes:
        at: when, in seconds since 1970.
        lane: the process, table or record that it belongs to.
        what: a word: ``row``, ``event``, ``call``, ``object`` …
        text: in one line.
        took_s: how long it went on.
        data: all of it.
    """

    at: float
    lane: str
    what: str
    text: str
    took_s: float = 0.0
    data: Any = None


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="frame"):
    """A piece of a conversation over one connection.

    Attributes:
        connection: which one, e.g. ``3``.
        sender: ``we`` or ``product``.
        after_s: seconds since the connection was opened.
        text: what was sent, as far as it is kept.
        size_bytes: how much it was.
    """

    connection: str
    sender: Literal["we", "product"]
    after_s: float
    text: str
    size_bytes: int = 0


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of what several sides showed.

    Attributes:
        name: of the field.
        seen: side → its value, as text.
        expected: what it should be; ``None`` where the others alone tell.
        wrong: the sides that are to blame.
        why: how that is known.
    """

    name: str
    seen: dict[str, str]
    expected: str | None = None
    wrong: tuple[str, ...] = ()
    why: str = ""


class Sides(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="sides"):
    """What several sides did with the same scenario, next to each other."""

    scenario: str
    fields: tuple[Field, ...]


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a plot: points as x and y."""

    name: str
    points: tuple[tuple[float, float], ...]


class Plot(msgspec.Struct, frozen=True, kw_only=True, tag_field="tells", tag="plot"):
    """Curves over one axis.

    Attributes:
        title: what is shown.
        x: name and unit of the horizontal axis.
        y: of the vertical one.
        curves: at least one; of equal units.
        style: ``line``, or ``bar`` for one value of each name.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    style: Literal["line", "bar", "step"] = "line"


Told = Message | Link | Moment | Frame | Sides | Plot

#: Renders some rows when they are asked for.
Teller = Callable[[], Iterable[Told]]

_tellers: deque[Teller] = deque(maxlen=_KEPT)


def tell(teller: Teller) -> None:
    """Have something to tell of the test under way in this process; from any thread."""
    _tellers.append(teller)


def forget_story() -> None:
    """Another test begins."""
    _tellers.clear()


def story() -> tuple[Told, ...]:
    """All that was told since the test began, oldest first.

    What a teller makes of a strange product may fail, and is then a row itself: the verdict of the test
    does not rest on it.
    """
    rows: list[Told] = []
    for teller in tuple(_tellers):
        try:
            rows.extend(teller())
        except Exception as error:  # noqa: BLE001 - the edge of the harness to any suite; recorded
            rows.append(
                Message(id="untold", text=f"cannot be told: {type(error).__name__}: {error}")
            )
    return tuple(rows)


def story_text(rows: Iterable[Told]) -> str:
    """The lines of the file."""
    encode = msgspec.json.Encoder(enc_hook=str).encode
    return "".join(f"{encode(row).decode()}\n" for row in rows)


def read_story(text: bytes) -> list[Told]:
    """The rows of a file; a line that is none is left out, for its test may have been cut short."""
    rows: list[Told] = []
    for line in text.splitlines():
        try:
            rows.append(_DECODER.decode(line))
        except msgspec.DecodeError:
            continue
    return rows


_DECODER: Final = msgspec.json.Decoder(Told)
