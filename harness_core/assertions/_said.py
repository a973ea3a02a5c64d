"""What must be said at the end, judged loosely: a model words the same thing in many ways."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Final

from harness_core.base.errors import BadInput

_NUMBER: Final = re.compile(r"(?<![\w.\-])[-+]?\d+(?:[.,]\d+)?(?![\w.\-]*\d)")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Conditions on the last words for a message; all of them must hold, letter case aside.

    Attributes:
        contains: texts that must all be there.
        any_of: texts of which one must be there.
        regex: an expression that must match somewhere.
        near: a number that must be there.
        without: words that must not be there, each a whole word.
    """

    contains: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    regex: str = ""
    near: float | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("contains", "any_of", "without"):
            texts: Any = getattr(self, name)
            if isinstance(texts, str) or not all(isinstance(t, str) and t for t in texts):
                raise BadInput("Said", key=name, found=texts, expected="a tuple of texts")
        try:
            re.compile(self.regex)
        except re.error as error:
            raise BadInput(
                "Said", key="regex", found=self.regex, expected=f"a regular expression ({error})"
            ) from error
        if not (
            self.contains or self.any_of or self.regex or self.without or self.near is not None
        ):
            raise BadInput("Said", found="no condition", expected="at least one")

    def problems(self, text: str) -> Iterator[str]:
        """What is not so, expected before found."""
        low = text.casefold()
        for part in self.contains:
            if part.casefold() not in low:
                yield f"expected {part!r} in what was said, found {text!r}"
        if self.any_of and not any(part.casefold() in low for part in self.any_of):
            yield f"expected one of {', '.join(map(repr, self.any_of))}, found {text!r}"
        if self.regex and not re.search(self.regex, text, re.IGNORECASE):
            yield f"expected something like {self.regex!r}, found {text!r}"
        numbers = [float(each.replace(",", ".")) for each in _NUMBER.findall(text)]
        if self.near is not None and self.near not in numbers:
            yield f"expected the number {self.near:g}, found {text!r}"
        for word in self.without:
            if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE):
                yield f"expected no {word!r} in what was said, found {text!r}"
