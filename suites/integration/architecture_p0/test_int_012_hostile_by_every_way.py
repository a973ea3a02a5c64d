"""INT-012: hostile words change nothing and tell nothing, by an agent's tool and in any parameter too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pytest

from harness_core.doubles.http import HttpClient, Unanswered
from harness_core.doubles.turns import say, use
from harness_core.system.compose import Stack
from suites.integration.cataloguing import Catalogue, contents
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.hostile import ALL, expect_nothing_told, secrets_of
from suites.integration.shares import shares

pytestmark = [pytest.mark.covers("INT-012"), pytest.mark.integration_p0]

#: The longest words that an agent is offered to search for.
_WORDS_CHARS: Final = 200
#: Calls of a model in one turn: an agent may have a bound on its turns.
_CALLS_N: Final = 26
#: Of the words of an agent, every so many are held against what the API answers.
_HELD: Final = 4
#: The longest request that a server must answer, if only to refuse it.
_READ_CHARS: Final = 100_000

#: Parameters besides q, of which none of the words is a value; and whether any word may be one.
_PARAMETERS: Final = (
    ("category", "{}", False),
    ("max_unit_cost_usd", "{}", False),
    ("max_weight_g", "{}", False),
    ("limit", "{}", False),
    ("cursor", "{}", False),
    ("spec", "{}", False),
    ("spec", "length_mm>={}", False),
    ("spec", "{}=4", False),
    ("spec", "thread={}", True),
)


async def test_int_012_every_parameter_is_data(stack: Stack, controller: HttpClient) -> None:
    """More than 200 hostile words as values of the other parameters are refused: 400 to 431.

    As the value of a specification that is a word they are looked for, and no part has them. No answer tells
    of the database or of a secret, and all is the same afterwards, the answer to an ordinary search too.
    """
    catalogue, secrets = Catalogue(controller), secrets_of(stack)
    before, sound = await contents(stack), await catalogue.search(q="servo", limit=1)
    for place, words in enumerate(ALL):
        name, form, any_word = _PARAMETERS[place % len(_PARAMETERS)]
        # A request that is larger than a server reads may be cut off.
        with suppress(*[Unanswered] if len(words) > _READ_CHARS else []):
            answer = await catalogue.ask(**{name: form.format(words)})
            shown = f"{name} {form.format(words[:80])!r}"
            allowed = 400 <= answer.status < 432 or (any_word and answer.status == 200)
            assert allowed, f"expected {shown} to be refused, or to be data, found {answer}"
            expect_nothing_told(words, answer.text, secrets)
            found = answer.json()["candidates"] if answer.status == 200 else []
            assert not found, f"no part has {shown}, found {found}"
    expect_same(before, await contents(stack), what="the database before and after such values")
    again = await catalogue.search(q="servo", limit=1)
    expect_same(sound, again, what="an ordinary search before and after such values")


@pytest.mark.parametrize("share", shares(3))
async def test_int_012_an_agents_hostile_words_are_data(episodes: Episodes, share: slice) -> None:
    """Of 200 words, in shares, an agent's tool takes and refuses those that the API does, and finds the same.

    Each search that was carried out leaves an event and a line of the journal, and none leaves anything else:
    no row of the catalogue, no file, no other event; its answers tell nothing. The model provider is a
    stand-in: the gateway does the turns.
    """
    words = [each for each in ALL if len(each) <= _WORDS_CHARS]
    assert 200 <= len(words), f"there are {len(words)} words, fewer than were promised"
    words = words[share]
    idle = await episodes.run(new_token(), say("There is nothing to find."), role="planner")
    # Before anybody lists its files, which is an event too.
    usual = _others(await episodes.events(idle["episode_id"]))
    begun = await episodes.session(idle["session_id"]).files()
    before, secrets = await contents(episodes.stack), secrets_of(episodes.stack)
    uses = [use("search_catalogue", q=each, limit=1) for each in words]
    turns = [tuple(uses[at : at + _CALLS_N]) for at in range(0, len(uses), _CALLS_N)]
    episode = await episodes.run(new_token(), *turns, role="planner")

    told = [trace for trace in episode["traces"] if trace["kind"] == "tool"]
    expect_same(len(words), len(told), what="calls of the agent on record")
    for each, trace in zip(words, told, strict=True):
        expect_nothing_told(each, str(trace["detail"]["result"]), secrets)
    events = await episodes.events(episode["episode_id"])
    searched = calls(events, "cots_search")
    done = [trace["ok"] for trace in told]
    expect_same(sum(done), len(searched), what="searches that were carried out, and their events")
    await _as_by_api(Catalogue(episodes.controller), words, done, searched)
    lines = [(each["event_source"], each["event_seq"]) for each in episode["journal"]]
    named = [(each["source"], each["seq"]) for each in searched]
    expect_same(named, lines, what="events of the searches, and those that the journal names")
    expect_same(
        usual, _others(events), what="events of an agent that does nothing, and of this one"
    )
    left = await episodes.session(episode["session_id"]).files()
    expect_same(begun, left, what="files of an agent that does nothing, and of this one")
    expect_same(
        before, await contents(episodes.stack), what="the database before and after its words"
    )


async def _as_by_api(
    catalogue: Catalogue, words: Sequence[str], done: Sequence[bool], events: Sequence[Any]
) -> None:
    """Hold calls against what the API answers to the same words: whether, and with which parts."""
    left = iter(events)
    for place, (each, carried_out) in enumerate(zip(words, done, strict=True)):
        payload = next(left)["payload"] if carried_out else {}
        if place % _HELD:
            continue
        answer = await catalogue.ask(q=each, limit=1)
        what = f"the words {each[:80]!r}, by API and by tool"
        expect_same(answer.status == 200, carried_out, what=f"whether there is an answer to {what}")
        if carried_out:
            page = answer.json()
            by_api = ([part["part_id"] for part in page["candidates"]], page["total"])
            expect_same(by_api, (payload["part_ids"], payload["total"]), what=f"parts of {what}")


def _others(events: Sequence[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """How many events of other kinds there are, by kind and tool."""
    return Counter(
        (event["kind"], str(event["payload"].get("tool", "")))
        for event in events
        if event["kind"] != "cots_search"
    )
