"""Style and script of pages, and the policy that lets no others in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Final

import jinja2
from markupsafe import Markup

__all__ = ["EARLY", "digest", "joined", "ours", "templates"]

#: Before anything is shown: views are shown one at a time.
EARLY: Final = 'document.documentElement.classList.add("js")'


def joined(names: Iterable[str], *, package: str = __package__) -> str:
    """Files of a package one after the other."""
    source = files(package)
    return "\n".join((source / name).read_text("utf-8") for name in names)


def ours(text: str) -> Markup:
    """A text of ours, no product's, that stands in the page as it is."""
    return Markup(text)  # noqa: S704


def digest(texts: Sequence[str]) -> str:
    """Texts as a policy (CSP) names them."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{each}'" for each in hashes)


def templates() -> jinja2.Environment:
    """What renders: everything is escaped, and what is not given is an error."""
    return jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
