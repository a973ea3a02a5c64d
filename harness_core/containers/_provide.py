"""Which image a service runs, and how it comes to be at hand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from harness_core.containers._client import engine_client, engine_errors, library
from harness_core.engine import Engine
from harness_core.errors import HarnessError, Unavailable

__all__ = ["ImageChoice", "provide_image"]

#: A pull of some hundred megabytes; one call is silent only while the registry is.
_PULL_SILENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChoice:
    """The images that serve one purpose, in the order in which they are tried.

    Args:
        variable: environment variable that names an image and ends the search.
        prepared: tags of ``harness images build`` that serve as well; the first one at hand wins,
            because it starts fastest and needs nobody.
        public: the pinned public image, pulled when it is not at hand.
    """

    variable: str
    prepared: tuple[str, ...]
    public: str


def provide_image(engine: Engine, choice: ImageChoice) -> str:
    """Find or pull the image; blocks.

    Returns:
        A reference that the engine has at hand.

    Raises:
        Unavailable: there is none; says what was tried and how to get one.
    """
    given = os.environ.get(choice.variable)
    with engine_client(engine, timeout_s=_PULL_SILENCE_S) as client:
        for reference in (given,) if given else (*choice.prepared, choice.public):
            if _at_hand(client, reference):
                return reference
        wanted = given or choice.public
        try:
            with engine_errors(f"pull {wanted}"):
                client.images.pull(wanted)
        except HarnessError as error:
            missing = "" if given else ", none of `harness images build` is there,"
            raise Unavailable(
                f"find an image for {choice.variable}",
                observed=f"{wanted} is not at hand{missing} and cannot be pulled: {error.observed}",
                next_step=f"Run `harness images build`, or name an image in {choice.variable}, or "
                "run with --services local",
            ) from error
    return wanted


def _at_hand(client: object, reference: str) -> bool:
    with engine_errors(f"look for image {reference}"):
        try:
            client.images.get(reference)  # type: ignore[attr-defined]
        except library().errors.ImageNotFound:
            return False
    return True
