"""Which image a service runs, and how it comes to be at hand: found, pulled, or built on demand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.infrastructure.containers._build import at_hand, build_missing, one_builder, pull
from harness_core.infrastructure.containers._client import engine_client
from harness_core.infrastructure.containers._recipes import image_tag
from harness_core.infrastructure.engine import Engine

#: A pull of some hundred megabytes, or a build; one call is silent only while a package unpacks.
_SILENCE_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChoice:
    """The images that serve one purpose, in the order in which they are tried.

    Args:
        variable: environment variable that names an image and ends the search.
        prepared: names of images of the harness that serve as well; the first one at hand wins,
            because it starts fastest and needs no registry. The first one is built when there is no
            other way.
        public: the pinned public image, pulled when it is not at hand.
    """

    variable: str
    prepared: tuple[str, ...]
    public: str


def provide_image(
    engine: Engine, choice: ImageChoice, *, say: Callable[[str], None] = lambda _text: None
) -> str:
    """Find, pull or build the image; blocks.

    Args:
        engine: where.
        choice: which.
        say: gets a line for what takes long.

    Returns:
        A reference that the engine has at hand.

    Raises:
        Unavailable: there is none; names what was tried and how to get one.
    """
    given = os.environ.get(choice.variable)
    with engine_client(engine, timeout_s=_SILENCE_S) as client:
        if found := _found(client, choice, given):
            return found
        with one_builder():
            # Twenty servers that start at once want it once.
            return _found(client, choice, given) or _made(client, choice, given, say)


def _found(client: Any, choice: ImageChoice, given: str | None) -> str:
    prepared = tuple(image_tag(name) for name in choice.prepared)
    tried = (given,) if given else (*prepared, choice.public)
    return next((reference for reference in tried if at_hand(client, reference)), "")


def _made(client: Any, choice: ImageChoice, given: str | None, say: Callable[[str], None]) -> str:
    wanted = given or choice.public
    action = f"find an image for {choice.variable}"
    advice = (
        f"Run `harness images build`, or name an image in {choice.variable}, or run with "
        "--services local"
    )
    if (refusal := pull(client, wanted, say=say)) is None:
        return wanted
    observed = f"{wanted} is not at hand and cannot be pulled: {refusal.observed}"
    if given or not choice.prepared:
        raise Unavailable(action, observed=observed, next_step=advice) from refusal
    name = choice.prepared[0]
    say(f"building {name} instead, once for this machine")
    try:
        build_missing(client, names=(name,), bases="auto", say=say)
    except HarnessError as error:
        raise Unavailable(
            action,
            observed=f"{observed}; and {name} cannot be built: {error.observed}",
            next_step=f"{error.next_step}. {advice}" if error.next_step else advice,
            tail=error.tail,
        ) from error
    return image_tag(name)
