"""Arguments recognised for certain: constants, options, yes or no, addresses, ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from harness_core.llm.policy import _phrases as phrases
from harness_core.llm.policy._filling import UNIT_WORDS, Source, Span, State, is_id
from harness_core.llm.policy._kinds import kinds_of
from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._results import find_id
from harness_core.llm.policy._words import identifier_words, stem, stems, tokens

__all__ = ["fill_addresses", "fill_booleans", "fill_constants", "fill_enumerations", "fill_ids"]

_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|without|off|isn't|don't|disable[d]?)\b", re.IGNORECASE
)


_ACCOUNT: Final = re.compile(
    r"\bto\s+(?:(?:the|chat|user|number|account|id)\s+)*#?(\d{3,})\b(?![.,:/-]\d)", re.IGNORECASE
)

_UUID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)


def fill_constants(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        if parameter.has_const:
            state.put(parameter, parameter.const, evident=False)


def fill_enumerations(state: State, parameters: Sequence[Parameter]) -> None:
    text = state.source.text
    for parameter in parameters:
        if not parameter.enum:
            continue
        options = [value for value in parameter.enum if isinstance(value, str)]
        if parameter.words & UNIT_WORDS:
            continue  # units go with their number
        exact = phrases.known_term(text, sorted(options, key=lambda o: -len(o)))
        if exact is not None:
            state.put(parameter, exact[0], exact[1])
            continue
        implied = _implied(options, state)
        if implied is not None:
            state.put(parameter, implied)
            continue
        for quantity in state.quantities:
            if quantity.value in parameter.enum and parameter.name_stems & set(stems(text)):
                state.put(parameter, parameter.enum[parameter.enum.index(quantity.value)])
                break


def _implied(options: Sequence[str], state: State) -> str | None:
    """The option that names what kind of thing the text speaks of (bpm → heart_rate)."""
    said: set[str] = set()
    for token in tokens(state.source.text):
        said |= kinds_of(token.stem) if token.kind == "word" else set()
    for quantity in state.quantities:
        said |= kinds_of(stem(quantity.unit_text)) if quantity.unit_text else set()
        if quantity.second is not None and quantity.second > 20:  # noqa: PLR2004 - no 1-10 scale
            said |= {stem("blood"), stem("pressure")}
    best: tuple[float, str] | None = None
    for option in options:
        words = [stem(word) for word in identifier_words(option)]
        share = sum(word in said for word in words) / len(words) if words else 0.0
        if share > (best[0] if best is not None else 0.5):
            best = (share, option)
    return best[1] if best is not None else None


def fill_booleans(state: State, parameters: Sequence[Parameter]) -> None:
    said = set(stems(state.source.text))
    for parameter in parameters:
        if parameter.types == ("boolean",):
            words = {w for w in parameter.name_stems if w not in state.source.tool_words}
            if re.search(r"\boff\b", state.source.text) and parameter.words & {"on", "enabled"}:
                state.put(parameter, value=False)
            elif re.search(r"\bon\b", state.source.text) and parameter.words == {"on"}:
                state.put(parameter, value=True)
            elif words & said:
                state.put(parameter, _NEGATION.search(state.source.text) is None)


def fill_addresses(state: State, parameters: Sequence[Parameter]) -> None:
    finders = (("email", phrases.email), ("phone", phrases.phone), ("url", phrases.url))
    for parameter in parameters:
        if not parameter.accepts("string"):
            continue
        for kind, find in finders:
            wanted = parameter.format in (kind, {"url": "uri"}.get(kind)) or kind in parameter.words
            if kind == "email":
                wanted = wanted or bool(parameter.words & {"mail", "e"} == {"mail", "e"})
            # An address among the examples is how a schema says that it takes addresses.
            wanted = wanted or any(_is_whole(find, example) for example in parameter.examples)
            if wanted and (found := find(state.source.text)) is not None:
                state.put(parameter, found[0], found[1])
                break
        else:
            _fill_account(state, parameter)


def _is_whole(find: Callable[[str], tuple[str, Span] | None], example: object) -> bool:
    if not isinstance(example, str) or example.isdecimal():
        return False  # bare digits are an account, whatever a phone number may look like
    found = find(example)
    return found is not None and found[0] == example


def _fill_account(state: State, parameter: Parameter) -> None:
    """A number that somebody goes by, where the examples hold such numbers: "to 4711"."""
    if not any(isinstance(e, str) and e.isdecimal() for e in parameter.examples):
        return
    said = _ACCOUNT.search(state.source.text)
    if said is not None:
        state.put(parameter, said[1], said.span(1))


def fill_ids(state: State, parameters: Sequence[Parameter]) -> None:
    source = state.source
    for parameter in parameters:
        if not is_id(parameter):
            continue
        value = find_id(
            parameter.name, done=source.done, text=source.text, plain_name=source.tool_noun
        )
        if value is None:
            value = _spoken_id(parameter, source)
        if value is None:
            continue
        if "integer" in parameter.types and str(value).isdecimal():
            state.put(parameter, int(value))
        elif parameter.accepts("string"):
            state.put(parameter, str(value))
        elif isinstance(value, int) and parameter.accepts("integer"):
            state.put(parameter, value)


def _spoken_id(parameter: Parameter, source: Source) -> str | None:
    """An id that the message itself gives: a UUID, "contact 12", "#12"."""
    uuid = _UUID.search(source.text)
    if uuid is not None and parameter.accepts("string"):
        return uuid[0]
    noun = next(iter(sorted(parameter.words - {"id", "ids"})), source.tool_noun)
    spoken = re.search(rf"(?:\b{re.escape(noun)}s?\s+(?:id\s+|number\s+|no\.?\s+)?#?|#)(\d+)\b",
                       source.text, re.IGNORECASE) if noun else None  # fmt: skip
    return spoken[1] if spoken is not None else None
