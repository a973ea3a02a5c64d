"""Arguments that are words: known terms, names, things, and the clause as it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness_core.llm.policy import _phrases as phrases
from harness_core.llm.policy._fill_dates import date_kind
from harness_core.llm.policy._filling import (
    AMOUNT_WORDS,
    FREQUENCY_WORDS,
    ITEM_WORDS,
    PLACE_WORDS,
    PROSE_WORDS,
    UNIT_WORDS,
    Span,
    State,
    is_free,
    overlaps,
)
from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._verbs import Act
from harness_core.llm.policy._words import stem, word_set

__all__ = [
    "fill_known_terms",
    "fill_names",
    "fill_placed",
    "fill_prose",
    "fill_searches",
    "fill_short_texts",
    "fill_string_lists",
    "fill_things",
]

_SHORT_WORDS: Final = frozenset(["title", "subject", "task", "label", "what", "headline", "action"])


_PERSON_WORDS: Final = word_set(
    """
    contact person who recipient contacts friend attendee participant assignee owner sender to
    people first last full
    """
)


_SEARCH_WORDS: Final = frozenset(["query", "q", "search", "term", "keyword", "keywords"])


#: Parameters with a way of their own: a noun phrase would be the wrong kind of value.
_SPECIAL_WORDS: Final = PROSE_WORDS | UNIT_WORDS | AMOUNT_WORDS | FREQUENCY_WORDS | PLACE_WORDS


#: Parameters whose values are no words of ordinary speech.
_EXACT_WORDS: Final = word_set(
    """
    cron expression regex pattern json code token password secret path file command sql cmd
    args schema version hash url uri host port key
    """
)


_PERSON_STEMS: Final = frozenset(stem(word) for word in ["contact", "person", "friend", "people"])


_ABOUT_PERSON: Final = re.compile(
    r"\bname\b[^.]{0,20}\b(?:person|contact|friend|someone)\b|\b(?:person|contact|friend)'s name\b"
    r"|\bwhose\b|\bwho(?:m)?\b|^(?:the\s+)?(?:person|contact|friend|someone)\b"
    r"|\b(?:about|concerned|recipient)\b[^.]{0,12}\b(?:person|contact)\b"
)


def fill_quoted(state: State, parameters: Sequence[Parameter]) -> None:
    """A quotation is the name of what is spoken of, whatever words it is made of."""
    said = phrases.quoted(state.source.text)
    if said is None or state.source.act is Act.SEND:
        return
    for parameter in parameters:
        titled = parameter.words & (_SHORT_WORDS | {"name", "item", "entry", "product", "thing"})
        if titled and is_free(parameter) and not date_kind(parameter):
            state.put(parameter, said[0], said[1])
            return


def fill_known_terms(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        if not is_free(parameter) or parameter.words & PROSE_WORDS or date_kind(parameter):
            continue
        found = phrases.known_term(state.source.text, parameter.vocabulary)
        if found is not None:
            state.put(parameter, found[0], found[1])


def fill_names(state: State, parameters: Sequence[Parameter]) -> None:
    found = [name for name in phrases.names(state.source.text) if not overlaps(name[1], state)]
    for parameter in parameters:
        about_person = bool(state.source.tool_words & _PERSON_STEMS)
        person = _is_person(parameter, about_person=about_person)
        if not is_free(parameter) or date_kind(parameter) or not person:
            continue
        if not found:
            return
        name, span = found[0]
        words = name.split()
        if "first" in parameter.words:
            state.put(parameter, words[0], span)
        elif "last" in parameter.words:
            if len(words) > 1:
                state.put(parameter, " ".join(words[1:]), span)
                found.pop(0)
        else:
            state.put(parameter, name, span)
            found.pop(0)


def _is_person(parameter: Parameter, *, about_person: bool = False) -> bool:
    prose = parameter.description.lower()
    by_words = bool(parameter.words & _PERSON_WORDS)
    by_prose = _ABOUT_PERSON.search(prose) is not None
    # A capital in every example ("Alice Smith") is how a schema says "proper name".
    capital = [e for e in parameter.examples if isinstance(e, str)]
    by_examples = bool(capital) and all(re.match(r"[A-Z]", example) for example in capital)
    lower = bool(capital) and not by_examples
    if "name" in parameter.words:
        return (by_prose or by_words or by_examples or about_person) and not lower
    return (by_words or by_prose) and not lower and not parameter.words & PROSE_WORDS


def fill_placed(state: State, parameters: Sequence[Parameter]) -> None:
    """The thing, and where it goes: add milk to my shopping list."""
    parts = phrases.object_and_place(state.source.text)
    placing = any(parameter.words & PLACE_WORDS for parameter in state.parameters)
    for parameter in parameters:
        is_place = bool(parameter.words & PLACE_WORDS)
        about_place = bool(parameter.description_stems & {stem(word) for word in PLACE_WORDS})
        named_thing = placing and "name" in parameter.words and not about_place
        is_item = bool(parameter.words & ITEM_WORDS) or named_thing
        if parts is not None and is_item and parameter.accepts("array") and parameter.items:
            items = [part for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", parts[0]) if part]
            state.put(parameter, items)
        elif parts is not None and is_item and is_free(parameter):
            state.put(parameter, _without_article(parts[0]))
        elif is_free(parameter) and (is_place or ("name" in parameter.words and about_place)):
            place = _place_name(state.source.text, parts)
            if place:
                state.put(parameter, place)


def _without_article(text: str) -> str:
    bare = re.sub(r"^(?:a|an|the|some|my|our)\s+", "", text, flags=re.IGNORECASE)
    return bare.strip("'\"“”\u2018\u2019 ")


def _place_name(text: str, parts: tuple[str, str] | None) -> str:
    listed = re.search(
        r"\b(?:my|the|our|a)\s+((?:[\w-]+\s+){0,2}?[\w-]+)\s+(?:list|collection)\b",
        text,
        re.IGNORECASE,
    )
    if listed is not None:
        return listed[1]
    if parts is not None:
        return re.sub(r"\s+(?:list|collection)$", "", parts[1], flags=re.IGNORECASE)
    return ""


def fill_searches(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        searching = parameter.words & _SEARCH_WORDS
        by_name = state.source.act is Act.READ and "name" in parameter.words
        if not is_free(parameter) or not (searching or by_name):
            continue
        named = phrases.names(state.source.text)
        said = phrases.quoted(state.source.text)
        value = said[0] if said else named[0][0] if named else ""
        if not value:
            thing = phrases.noun_phrase(phrases.payload(state.source.text))
            value = thing[0] if thing is not None else ""
        if value and (parameter.required or said or named):
            state.put(parameter, value)


def fill_string_lists(state: State, parameters: Sequence[Parameter]) -> None:
    """Arrays take the known terms that are said, else the things enumerated."""
    for parameter in parameters:
        if "array" in parameter.types and parameter.items is not None:
            words = (*parameter.items.vocabulary, *parameter.vocabulary)
            found = [w for w in words if phrases.known_term(state.source.text, [w]) is not None]
            if found:
                state.put(parameter, found)
            elif parameter.required and parameter.items.accepts("string"):
                thing = _thing(state)
                if thing is not None:
                    parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", thing[0])
                    state.put(parameter, [part for part in parts if part], evident=False)


def fill_prose(state: State, parameters: Sequence[Parameter]) -> None:
    """One parameter takes the clause as it stands, so that nothing said is lost."""
    candidates = [p for p in parameters if is_free(p) and p.words & PROSE_WORDS]
    candidates.sort(key=lambda p: not p.required)
    for number, parameter in enumerate(candidates):
        optional = (number or state.source.supporting) and not parameter.required
        if state.source.act is Act.READ or optional:
            continue
        said = phrases.quoted(state.source.text) if state.source.act is Act.SEND else None
        text = said[0] if said is not None else state.source.text
        state.put(parameter, text[: parameter.max_length], evident=False)


def fill_short_texts(state: State, parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        short = parameter.words & (_SHORT_WORDS | (ITEM_WORDS - {"value"}))
        if not is_free(parameter) or date_kind(parameter) or not short:
            continue
        said = phrases.quoted(state.source.text)
        text = said[0] if said is not None else phrases.payload(state.source.text)
        if text and (parameter.required or said is not None or parameter.words & {"title", "task"}):
            state.put(parameter, text[: parameter.max_length], evident=said is not None)


def fill_things(state: State, parameters: Sequence[Parameter]) -> None:
    """What is left of the required strings: a quotation, else the thing the clause speaks of."""
    for parameter in parameters:
        if not parameter.required or not is_free(parameter) or date_kind(parameter):
            continue
        if parameter.words & _SPECIAL_WORDS or parameter.format:
            continue
        said = phrases.quoted(state.source.text)
        if said is not None and not overlaps(said[1], state):
            state.put(parameter, said[0], said[1])
            continue
        label = phrases.labelled(state.source.text, parameter.words)
        if label is not None and not overlaps(label[1], state):
            state.put(parameter, label[0], label[1])
            continue
        about_person = bool(state.source.tool_words & _PERSON_STEMS)
        if _is_person(parameter, about_person=about_person) or parameter.words & _EXACT_WORDS:
            continue  # nobody is named, and a thing is no person and no expression
        thing = _thing(state)
        if thing is not None:
            state.put(parameter, thing[0], thing[1], evident=False)


def _thing(state: State) -> tuple[str, Span] | None:
    taken = list(state.used)
    taken += [(quantity.start, quantity.end) for quantity in state.quantities]
    taken += list(state.when.spans) if state.when is not None else []
    return phrases.noun_phrase(state.source.text, taken=taken)
