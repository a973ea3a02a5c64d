"""``state_*``: any JSON under any key, and a prefix is a prefix (contract, "Database")."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, cast

import pytest

from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem

pytestmark = pytest.mark.covers("E2E-STATE")

#: Larger than any cell a person fills, small enough for one call.
BIG_CHARS: Final = 300_000

VALUES: Final = {
    "true": True,
    "false": False,
    "null": None,
    "zero": 0,
    "negative": -17,
    "beyond-32-bits": 2**53,
    "fraction": 0.1,
    "tiny": 1e-9,
    "empty-text": "",
    "text": "tea, please",
    "text-that-looks-like-json": '{"a": 1}',
    "text-that-says-null": "null",
    "quotes-and-backslashes": 'a "b" \\ \\n c',
    "unicode": "Ünïcødé 茶 🫖 \u202e",
    "lines": "one\ntwo\r\nthree\t",
    "empty-list": [],
    "list": [1, "two", None, [3]],
    "empty-object": {},
    "object": {"a": {"b": [1, {"c": None}]}, "": "empty key", "ü": 1.5},
    "big": "x" * BIG_CHARS,
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

#: Endings that a careless comparison takes for one another: case, white space, composed or not.
RESEMBLING: Final = ("a", "A", "a ", "caf\u00e9", "cafe\u0301")

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
    """What was set is what stands in the row and what is given back, of the same type."""
    general = ecosystem["general"]
    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=token, value=value)
        answered = await _get(client, token)
        row = await general.database.one("SELECT value FROM state WHERE key = %s", (token,))

        assert _typed(value) == _typed(answered)
        assert _typed(value) == _typed(row["value"])


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
async def test_awkward_keys_are_keys(ecosystem: Ecosystem, token: str, key: str) -> None:
    """A key is taken literally: its value is found by it alone, overwritten and deleted by it."""
    general = ecosystem["general"]
    own, neighbour = f"{token}{key}", f"{token}{key}x"
    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=own, value=1)
        await client.call("state_set", key=neighbour, value="untouched")
        await client.call("state_set", key=own, value=[2])

        assert [2] == await _get(client, own)
        assert [own, neighbour] == await _listed(client, own)
        rows = await general.database.rows("SELECT key FROM state WHERE key = %s", (own,))

        assert 1 == len(rows), "a second value beside the first instead of over it"
        await client.call("state_delete", key=own)

        assert [neighbour] == await _listed(client, own)
        assert "untouched" == await _get(client, neighbour)


async def test_keys_that_resemble_each_other_are_several(ecosystem: Ecosystem, token: str) -> None:
    """What is set, read and deleted under one key leaves a key alone that people read alike."""
    keys = [f"{token}{ending}" for ending in RESEMBLING]
    async with open_conversation(ecosystem["general"]) as client, _tidy(client, token):
        for number, key in enumerate(keys):
            await client.call("state_set", key=key, value=number)

        assert list(range(len(keys))) == [await _get(client, key) for key in keys]
        await client.call("state_delete", key=keys[0])

        assert sorted(keys[1:]) == sorted(await _listed(client, token))


async def test_a_change_moves_its_time(ecosystem: Ecosystem, token: str) -> None:
    """A value that is set again is dated anew."""
    general = ecosystem["general"]

    async def dated() -> datetime:
        row = await general.database.one("SELECT updated_at FROM state WHERE key = %s", (token,))
        return cast("datetime", row["updated_at"])

    async with open_conversation(general) as client, _tidy(client, token):
        await client.call("state_set", key=token, value=1)
        first = await dated()
        await client.call("state_set", key=token, value=2)

        assert first < await dated()


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

        assert sorted(wanted) == sorted(await _listed(client, f"{token}{prefix}"))
        assert sorted(wanted + unwanted) == sorted(await _listed(client, token))


async def test_what_is_not_there_is_no_value(ecosystem: Ecosystem, token: str) -> None:
    """An unknown key has no value, which differs from a stored null; deleting it is harmless."""
    async with open_conversation(ecosystem["general"]) as client, _tidy(client, token):
        unknown = await client.try_call("state_get", key=token)
        await client.try_call("state_delete", key=token)
        await client.call("state_set", key=token, value=None)
        stored = await client.try_call("state_get", key=token)

        assert not stored.is_error, stored.text
        assert (False, stored.text) != (unknown.is_error, unknown.text), (
            f"null and nothing look alike: {stored.text}"
        )


async def test_a_butler_has_its_state_for_itself(ecosystem: Ecosystem, token: str) -> None:
    """What one butler keeps, another neither sees nor loses."""
    async with (
        open_conversation(ecosystem["general"]) as general,
        open_conversation(ecosystem["health"]) as health,
        _tidy(general, token),
    ):
        await general.call("state_set", key=token, value="of general")

        assert [] == await _listed(health, token)
        await health.try_call("state_delete", key=token)

        assert "of general" == await _get(general, token)


@asynccontextmanager
async def _tidy(client: Conversation, prefix: str) -> AsyncIterator[None]:
    """Keys that the block makes are gone after it; of a failed test they are kept."""
    yield
    for key in await _listed(client, prefix):
        await client.call("state_delete", key=key)


async def _get(client: Conversation, key: str) -> Any:
    answer = await client.call("state_get", key=key)
    return answer["value"] if isinstance(answer, dict) and "value" in answer else answer


async def _listed(client: Conversation, prefix: str) -> list[str]:
    """The keys that a listing names, whatever it wraps them in."""
    answer = await client.call("state_list", prefix=prefix)
    found = answer.get("keys", answer) if isinstance(answer, dict) else answer
    return [entry["key"] if isinstance(entry, dict) else entry for entry in found]


def _typed(value: Any) -> Any:
    """A value with its types: 1, 1.0 and true are equal in Python, and three values of JSON."""
    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return kind or type(value).__name__, value
