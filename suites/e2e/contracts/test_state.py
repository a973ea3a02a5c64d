"""``state_*``: any JSON under any key, and a prefix is a prefix (contract, "Database").

``test_state_history.py`` explores what a run of many calls leaves; here are the kinds, one each.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pytest
import trio

from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.sentences import expect_same, same_json

pytestmark = pytest.mark.covers("E2E-STATE")

#: Larger than any cell a person fills; what is beyond 18 bits may be refused (``AWKWARD``).
BIG_CHARS: Final = 200_000

#: More than a page of any list that has pages, or than a list may seem to need.
MANY: Final = 1104

#: Callers who set them, and delete them, side by side.
CALLERS: Final = 8

#: Changes of one key while others read it.
CHANGES: Final = 40

#: ``updated_at`` is the database's clock or the product's; both are this machine's.
CLOCKS_APART: Final = timedelta(seconds=2)

VALUES: Final = {
    "true": True,
    "false": False,
    "null": None,
    "zero": 0,
    "negative": -17,
    "beyond-32-bits": 2**53,
    "most-exact-negative": -(2**53) + 1,
    "fraction": 0.1,
    "all-its-digits": 0.12345678901234568,
    "tiny": 1e-9,
    "huge": 1.5e30,
    "empty-text": "",
    "text": "tea, please",
    "text-that-looks-like-json": '{"a": 1}',
    "text-that-says-null": "null",
    "text-of-a-number": "007",
    "text-of-a-time": "2026-03-08T02:30:00-03:30",
    "text-of-an-escape": "a\\u0000b \\ud83e \\n",
    "text-around-blanks": "  a  \n",
    "quotes-and-backslashes": 'a "b" \\ \\n c',
    "unicode": "Ünïcødé 茶 🫖 \u202e cafe\u0301 \ufeff\u200b \U0010ffff",
    "lines": "one\ntwo\r\nthree\t",
    "empty-list": [],
    "list": [1, "two", None, [3]],
    "list-in-its-order": [3, 1, 2, 2, True, 1.5, "1"],
    "nested": [[[[[[[[[[[[{"a": [[]]}]]]]]]]]]]]],
    "empty-object": {},
    "object": {"a": {"b": [1, {"c": None}]}, "": "empty key", "ü": 1.5, "A": False, " a": 0},
    "object-like-an-answer": {"key": "other", "found": False, "keys": [2]},
    "big": "x" * BIG_CHARS,
}

#: Endings of a key, and values, at or beyond the edge of what databases hold.
AWKWARD: Final = {
    "nul-in-text": ("", "a\0b"),
    "nul-in-a-name": ("", {"a\0": [1]}),
    "nul-in-key": ("\0", 1),
    "key-of-kibibytes": ("k" * 4000, 1),
    "text-beyond-18-bits": ("", "y" * (2**18 + 1)),
    "more-than-a-double": ("", 10**40),
    "deep": ("", json.loads("[" * 100 + "]" * 100)),
}

KEYS: Final = {
    "dots-and-slashes": "a.b/c:d",
    "percent": "100%",
    "underscore": "a_b",
    "backslash": "a\\b",
    "quote": 'it\'s "quoted"',
    "spaces": "  two  spaces ",
    "unicode": "clé-茶-🫖",
    "sql": "'; DROP TABLE state; --",
    "brackets": "a[0]{b}",
    "long": "k" * 300,
}

#: Endings that a careless comparison takes for one another: case, white space, composed or not,
#: width, a letter that is not seen, letters with several capitals, and the last letter of many.
RESEMBLING: Final = (
    *("a", "A", "a ", " a", "a\u200b", "a%", "caf\u00e9", "cafe\u0301", "\uff41"),
    *("stra\u00dfe", "strasse", "\u0131", "i", "k" * 255, "k" * 299 + "x", "k" * 299 + "y"),
)

#: prefix → the endings of keys below it, and of others that a pattern would take in as well.
PREFIXES: Final = {
    "plain": ("p", ["", "1", "q"], ["q1", "P1"]),
    "percent": ("50%", ["", " off"], ["50x", "500", "50"]),
    "underscore": ("a_", ["", "b"], ["ab", "abc", "a"]),
    "backslash": ("a\\", ["", "b", "\\"], ["ab", "a/b", "a"]),
    "backslash-percent": ("a\\%", ["", "b"], ["a%", "a%b", "a\\b"]),
    "star": ("a*", ["", "b"], ["ab", "a"]),
    "caret-and-dot": ("^a.", ["", "b"], ["ab", "a.b", "^ab"]),
    "unicode": ("clé", ["", "s"], ["cle", "cles"]),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_every_json_value_comes_back_as_it_went(
    ecosystem: Ecosystem, token: str, value: Any
) -> None:
    """What was set is what stands in the row, and what is given back alone and in a list."""
    general = ecosystem["general"]
    async with open_conversation(general) as client, _tidy(client, token):
        # Over another value: what was there before is no part of it.
        await client.call("state_set", key=token, value={"before": [token]})
        await client.call("state_set", key=token, value=value)
        row = await general.database.one("SELECT value FROM state WHERE key = %s", (token,))

        expect_value(value, await _get(client, token), where="what is given back")
        expect_value(value, row["value"], where="what stands in the row")
        listed = await _entries(client, token)

        expect_same("one key was set", expected=[token], found=list(listed))
        if listed[token] is not _NO_VALUE:
            expect_value(value, listed[token], where="what a list gives")


@pytest.mark.parametrize(("key", "value"), AWKWARD.values(), ids=AWKWARD)
async def test_what_a_database_may_not_hold_is_refused_or_kept(
    ecosystem: Ecosystem, token: str, key: str, value: Any
) -> None:
    """Kept whole, or refused in words with everything as it was: nothing is cut or replaced."""
    general = ecosystem["general"]
    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=token, value="before")
        answer = await client.try_call("state_set", key=f"{token}{key}", value=value)
        listed = await _listed(client, token)
        if answer.is_error:
            assert answer.text.strip(), "a value was refused without a word"
            expect_same("what was refused leaves nothing", expected=[token], found=listed)
            expect_value("before", await _get(client, token), where="what stood before a refusal")
        else:
            expect_same(
                "what was acknowledged is there",
                expected=sorted({token, f"{token}{key}"}),
                found=sorted(listed),
            )
            kept = await _get(client, f"{token}{key}")
            expect_value(value, kept, where="what was acknowledged")


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
async def test_awkward_keys_are_keys(ecosystem: Ecosystem, token: str, key: str) -> None:
    """A key is taken literally: its value is found by it alone, overwritten and deleted by it."""
    general = ecosystem["general"]
    own, neighbour = f"{token}{key}", f"{token}{key}x"
    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=own, value=1)
        await client.call("state_set", key=neighbour, value="untouched")
        await client.call("state_set", key=own, value=[2])

        expect_value([2], await _get(client, own), where=f"the last value of {key!r}")
        expect_same(
            "a prefix lists the keys that begin with it",
            expected=[own, neighbour],
            found=sorted(await _listed(client, own), key=len),
        )
        rows = await general.database.rows("SELECT key FROM state WHERE key = %s", (own,))

        expect_same("a key has one row", expected=[own], found=[row["key"] for row in rows])
        await client.call("state_delete", key=own)

        expect_same(
            "a deleted key is gone, its neighbour is not",
            expected=[neighbour],
            found=await _listed(client, own),
        )
        expect_value("untouched", await _get(client, neighbour), where="the value of the neighbour")


async def test_keys_that_resemble_each_other_are_several(ecosystem: Ecosystem, token: str) -> None:
    """What is set, read and deleted under one key leaves a key alone that people read alike."""
    keys = [f"{token}{ending}" for ending in RESEMBLING]
    async with open_conversation(ecosystem["general"]) as client, _tidy(client, token):
        for number, key in enumerate(keys):
            await client.call("state_set", key=key, value=number)
        found = {key: await _get(client, key) for key in keys}

        expect_same(
            "each key keeps its own value", expected=dict(zip(keys, range(99), strict=False)),
            found=found,
        )  # fmt: skip
        for key in keys[::2]:
            await client.call("state_delete", key=key)

        expect_same(
            "only what was deleted is gone",
            expected=sorted(keys[1::2]),
            found=sorted(await _listed(client, token)),
        )


@pytest.mark.corpus
async def test_a_list_is_whole(ecosystem: Ecosystem, token: str) -> None:
    """A list names every key below its prefix, however many there are, each once."""
    general = ecosystem["general"]
    keys = [f"{token}/{number:04}" for number in range(MANY)]
    async with open_conversation(general) as client:
        await _for_each(general, "state_set", [{"key": key, "value": key} for key in keys])
        listed = await _listed(client, f"{token}/")

        expect_same(f"of {MANY} keys the list names all", expected=keys, found=sorted(listed))
        everything = await _listed(client, "")

        assert set(keys) <= set(everything), (
            "without a prefix every key is listed: missing are "
            f"{sorted(set(keys) - set(everything))[:3]} of {len(everything)} listed"
        )
        await _for_each(general, "state_delete", [{"key": key} for key in keys])


async def test_a_change_moves_its_time(ecosystem: Ecosystem, token: str) -> None:
    """A value is dated by its last change; reading and listing are none, nor is another key's."""
    general = ecosystem["general"]

    async def dated() -> datetime:
        row = await general.database.one("SELECT updated_at FROM state WHERE key = %s", (token,))
        return cast("datetime", row["updated_at"])

    async with open_conversation(general) as client, _tidy(client, token):
        before = datetime.now(UTC)
        await client.call("state_set", key=token, value=1)
        first = await dated()
        after = datetime.now(UTC)

        assert before - CLOCKS_APART < first < after + CLOCKS_APART, (
            f"a value is dated when it is set, between {before} and {after}; found {first}"
        )
        await client.call("state_set", key=f"{token}x", value=1)
        await _get(client, token)
        await _listed(client, token)
        await client.call("state_delete", key=f"{token}x")

        expect_same("what changes nothing moves no date", expected=first, found=await dated())
        await client.call("state_set", key=token, value=2)
        second = await dated()

        assert first < second, f"a second value is dated {second}, the first one {first}"


@pytest.mark.parametrize(("prefix", "below", "others"), PREFIXES.values(), ids=PREFIXES)
async def test_a_prefix_is_never_a_pattern(
    ecosystem: Ecosystem, token: str, prefix: str, below: list[str], others: list[str]
) -> None:
    """Listing finds every key that begins with the prefix, letter by letter, and no other."""
    wanted = [f"{token}{prefix}{ending}" for ending in below]
    unwanted = [f"{token}{key}" for key in others]
    async with open_conversation(ecosystem["general"]) as client, _tidy(client, token):
        for key in (*wanted, *unwanted):
            await client.call("state_set", key=key, value=True)

        expect_same(
            f"the prefix {prefix!r} is taken letter by letter",
            expected=sorted(wanted),
            found=sorted(await _listed(client, f"{token}{prefix}")),
        )
        expect_same(
            "a shorter prefix lists them all",
            expected=sorted(wanted + unwanted),
            found=sorted(await _listed(client, token)),
        )


async def test_what_is_not_there_is_no_value(ecosystem: Ecosystem, token: str) -> None:
    """An unknown key has no value, which differs from a stored null; deleting it is harmless."""
    general = ecosystem["general"]
    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=f"{token}x", value=1)
        unknown = await client.try_call("state_get", key=token)
        gone = await client.try_call("state_delete", key=token)
        await client.call("state_set", key=token, value=None)
        stored = await client.try_call("state_get", key=token)
        deleted = await client.try_call("state_delete", key=token)
        again = await client.try_call("state_get", key=token)
        entries = await _listed(client, token)

        assert not stored.is_error, f"a stored null is a value, and was refused: {stored.text}"
        assert (False, stored.text) != (unknown.is_error, unknown.text), (
            f"null and nothing look alike: {stored.text}"
        )
        expect_same(
            "a key that was deleted is answered as one that never was",
            expected=(unknown.is_error, unknown.value),
            found=(again.is_error, again.value),
        )
        assert not deleted.is_error, f"a key that is there can be deleted: {deleted.text}"
        assert (gone.is_error, gone.value) != (False, deleted.value), (
            f"deleting what is not there is answered as deleting what is: {gone.text}"
        )
        expect_same("a neighbour is left alone", expected=[f"{token}x"], found=entries)


async def test_a_butler_has_its_state_for_itself(ecosystem: Ecosystem, token: str) -> None:
    """What one butler keeps, another neither sees nor loses."""
    async with (
        open_conversation(ecosystem["general"]) as general,
        open_conversation(ecosystem["health"]) as health,
        _tidy(general, token),
        _tidy(health, token),
    ):
        await general.call("state_set", key=token, value="of general")

        expect_same(
            "another butler sees none of it", expected=[], found=await _listed(health, token)
        )
        await health.try_call("state_delete", key=token)

        expect_value("of general", await _get(general, token), where="what another deleted")
        await health.call("state_set", key=token, value="of health")

        expect_value("of general", await _get(general, token), where="what another set")


async def test_readers_see_the_old_or_the_new(ecosystem: Ecosystem, token: str) -> None:
    """While a value is changed again and again, who reads it sees one of its values, whole."""
    general = ecosystem["general"]
    values = [{"number": number, "text": str(number) * 3000} for number in range(CHANGES)]
    seen: list[tuple[Any, list[str]]] = []
    async with (
        open_conversation(general) as writer,
        open_conversation(general) as reader,
        _tidy(writer, token),
    ):
        await writer.call("state_set", key=token, value=values[0])

        async def read(scope: trio.CancelScope) -> None:
            while not scope.cancel_called:
                with trio.CancelScope(shield=True):
                    answer = await reader.try_call("state_get", key=token)
                    seen.append((answer, await _listed(reader, token)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, nursery.cancel_scope)
            for value in values[1:]:
                await writer.call("state_set", key=token, value=value)
            nursery.cancel_scope.cancel()

        assert seen, "nothing was read meanwhile"
        last = 0
        for answer, listed in seen:
            assert not answer.is_error, f"a key that is changed was not found: {answer.text}"
            value = _value_of(answer.value)
            number = value.get("number", -1) if isinstance(value, dict) else -1

            assert number in range(last, CHANGES), (
                f"a reader sees the values in their order: after number {last} it was given "
                f"{str(answer.value)[:200]}"
            )
            expect_value(values[number], _value_of(answer.value), where="what a reader is given")
            expect_same("a key that is changed is listed", expected=[token], found=listed)
            last = number
        expect_value(values[-1], await _get(reader, token), where="the last value")


async def test_writers_at_once_lose_nothing(ecosystem: Ecosystem, token: str) -> None:
    """Several writers at once: each key of its own is kept, and a shared one is some writer's, whole."""
    general = ecosystem["general"]
    writers = [f"{token}{letter}" for letter in "abcd"]
    last: dict[str, Any] = {}

    async def write(own: str) -> None:
        async with open_conversation(general) as client:
            for number in range(5):
                last[own] = {"writer": own, "number": number, "text": own * 500}
                await client.call("state_set", key=f"{own}/{number}", value=last[own])
                await client.call("state_set", key=f"{token}-shared", value=last[own])

    async with open_conversation(general) as client, _tidy(client, token):
        async with trio.open_nursery() as nursery:
            for own in writers:
                nursery.start_soon(write, own)
        keys = sorted(f"{own}/{number}" for own in writers for number in range(5))

        expect_same(
            "what several set at once is all there",
            expected=[f"{token}-shared", *keys],
            found=sorted(await _listed(client, token)),
        )
        shared = await _get(client, f"{token}-shared")

        assert shared in last.values(), f"the shared key is no writer's last value: {shared}"


async def _for_each(butler: Butler, tool: str, calls: Sequence[Mapping[str, Any]]) -> None:
    """Make many calls of a tool, by several callers side by side."""

    async def make(part: Sequence[Mapping[str, Any]]) -> None:
        async with open_conversation(butler) as client:
            for arguments in part:
                await client.call(tool, **arguments)

    async with trio.open_nursery() as nursery:
        for number in range(CALLERS):
            nursery.start_soon(make, calls[number::CALLERS])


_NO_VALUE: Final = object()


def expect_value(expected: Any, found: Any, *, where: str) -> None:
    """A value came back as it went, of the same type: 1, 1.0 and true are three values of JSON."""
    assert same_json(expected, found), (
        f"what was set is what is kept: {where} is {str(found)[:300]!r} ({type(found).__name__}), "
        f"expected {str(expected)[:300]!r} ({type(expected).__name__})"
    )


@asynccontextmanager
async def _tidy(client: Conversation, prefix: str) -> AsyncIterator[None]:
    """Keys that the block makes are gone after it; of a failed test they are kept."""
    yield
    for key in await _listed(client, prefix):
        await client.call("state_delete", key=key)


async def _get(client: Conversation, key: str) -> Any:
    return _value_of(await client.call("state_get", key=key))


def _value_of(answer: Any) -> Any:
    """The value in an answer, whatever wraps it; a value may itself look like an answer."""
    wrapped = isinstance(answer, dict) and "value" in answer
    return answer["value"] if wrapped else answer


async def _entries(client: Conversation, prefix: str) -> dict[str, Any]:
    """Key → value of a list; without its value where the product lists keys alone."""
    answer = await client.call("state_list", prefix=prefix)
    if not isinstance(answer, dict):
        return {_key_of(entry): _listed_value(entry) for entry in answer}
    lists = [entries for entries in answer.values() if isinstance(entries, list)]
    found = {_key_of(entry): _listed_value(entry) for entries in lists for entry in entries}
    whole = [
        entry for entries in lists for entry in entries if _listed_value(entry) is not _NO_VALUE
    ]
    return found | {_key_of(entry): _listed_value(entry) for entry in whole}


def _key_of(entry: Any) -> str:
    return str(entry["key"] if isinstance(entry, dict) else entry)


def _listed_value(entry: Any) -> Any:
    return entry.get("value", _NO_VALUE) if isinstance(entry, dict) else _NO_VALUE


async def _listed(client: Conversation, prefix: str) -> list[str]:
    """The keys that a listing names, whatever it wraps them in."""
    answer = await client.call("state_list", prefix=prefix)
    found = answer.get("keys", answer) if isinstance(answer, dict) else answer
    return [_key_of(entry) for entry in found]
