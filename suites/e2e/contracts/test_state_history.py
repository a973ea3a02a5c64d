"""Whatever is done to the state store, in whatever order: it is what a dictionary would be.

Run: nox -s explore -- e2e
"""

from __future__ import annotations

from typing import Any, Final

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from harness_core.assertions import new_token
from harness_core.assertions.exploring import Explore, Machine
from suites.e2e.contracts.test_state import _NO_VALUE, _entries, _listed, _value_of
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.sentences import same_json

pytestmark = [pytest.mark.covers("E2E-STATE"), pytest.mark.explore]

#: What keys are made of: few, so that they meet, and each like another one of them.
_PIECES: Final = (
    *("a", "A", "á", "a\u0301", "%", "_", "\\", " ", ".", "/", "ß", "ss", "ﬁ", "0", "\u200b", "'"),
    *("k" * 64, "茶", "🫖"),
)

#: Keys up to here are kept; a product may refuse longer ones, in words.
_KEY_CHARS: Final = 300

_TEXTS: Final = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.sampled_from(["null", "true", "{}", '"', "1", "\\u0000", "%s", "$1", "\u2028"]),
    st.builds(
        lambda letter, chars: letter * chars,
        st.sampled_from("xé🫖"),
        st.sampled_from([255, 256, 2049]),
    ),
)

_NUMBERS: Final = st.one_of(
    st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False, width=64)
)

_VALUES: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=8,
)

_ENDINGS: Final = st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)


class StoreMachine(Machine):
    """One butler's state beside a dictionary of ours.

    Args:
        butler: whose state.
        client: calls its tools, over a connection that lasts.
    """

    def __init__(self, butler: Butler, client: Conversation) -> None:
        super().__init__()
        self._butler = butler
        self._client = client
        self._token = new_token()
        self._model: dict[str, Any] = {}

    @rule(ending=_ENDINGS, value=_VALUES)
    def set(self, ending: str, value: Any) -> None:
        """A value is set, over another or anew."""
        key = self._key(ending)
        answer = self.wait_for(self._call, "state_set", key, value)
        if answer.is_error:
            assert len(key) > _KEY_CHARS, f"a key and a value were refused: {answer.text}"
        else:
            self._model[key] = value

    @rule(data=st.data())
    def set_again(self, data: st.DataObject) -> None:
        """A key that is there gets another value."""
        if self._model:
            key = data.draw(st.sampled_from(sorted(self._model)))
            self.set(key.removeprefix(self._token), data.draw(_VALUES))

    @rule(letter=st.sampled_from("x\\"), chars=st.sampled_from([65_535, 65_537, 100_000]))
    def set_much(self, letter: str, chars: int) -> None:
        """A long text is set; of one key alone, since a client takes no list above a mebibyte."""
        self.set("much", letter * chars)

    @rule(ending=_ENDINGS)
    def get(self, ending: str) -> None:
        """A key has the value that was set last, or none."""
        key = self._key(ending)
        answer = self.wait_for(self._call, "state_get", key)
        if key in self._model:
            assert not answer.is_error, f"{key!r} was set, and is refused: {answer.text}"
            self._expect_value(key, _value_of(answer.value))
        else:
            assert answer.is_error or _value_of(answer.value) is None, (
                f"{key!r} was never set or is deleted, and has a value: {answer.text}"
            )

    @rule(ending=_ENDINGS)
    def delete(self, ending: str) -> None:
        """A key is deleted, whether it was there or not."""
        key = self._key(ending)
        answer = self.wait_for(self._call, "state_delete", key)

        assert key not in self._model or not answer.is_error, (
            f"{key!r} is there, and cannot be deleted: {answer.text}"
        )
        self._model.pop(key, None)

    @rule(data=st.data())
    def delete_one_that_is_there(self, data: st.DataObject) -> None:
        """A key that is there is deleted."""
        if self._model:
            self.delete(data.draw(st.sampled_from(sorted(self._model))).removeprefix(self._token))

    @rule(ending=_ENDINGS)
    def list(self, ending: str) -> None:
        """A list names the keys that begin with its prefix, each once, and no other."""
        prefix = self._key(ending)
        found = self.wait_for(self._list, prefix)
        expected = sorted(key for key in self._model if key.startswith(prefix))

        assert sorted(found) == expected, (
            f"below {prefix!r} are {expected}; the list names {sorted(found)}"
        )

    @rule(ending=_ENDINGS, values=st.lists(_VALUES, min_size=2, max_size=4))
    def several_at_once(self, ending: str, values: list[Any]) -> None:
        """Of several values that are set at once one stands, whole; readers see one of them."""
        key = self._key(ending)
        if len(key) > _KEY_CHARS:
            return
        before = [self._model[key]] if key in self._model else []
        seen = self.wait_for(self._set_at_once, key, values)
        allowed = [*before, *values]
        for answer in seen:
            value = _value_of(answer.value)

            assert any(same_json(value, one) for one in allowed) or (
                not before and (answer.is_error or value is None)
            ), f"while {key!r} was set to {values}, a reader was given {answer.text}"
        value = _value_of(self.wait_for(self._call, "state_get", key).value)

        assert any(same_json(value, one) for one in values), (
            f"{key!r} was set to {values} at once, and is {value}"
        )
        self._model[key] = value

    @invariant()
    def the_rows_are_the_model(self) -> None:
        """The table holds what the dictionary holds, and dates each."""
        rows = self.wait_for(self._rows)
        found = {row["key"]: row["value"] for row in rows}

        assert found.keys() == self._model.keys(), (
            f"the table has rows for {sorted(found)}, set and not deleted are {sorted(self._model)}"
        )
        for key, value in found.items():
            self._expect_value(key, value)

    def teardown(self) -> None:
        """Every key of the token is deleted, after a last look at the whole list."""
        entries = self.wait_for(self._all)
        for key in self._model:
            assert key in entries, f"{key!r} was set, and is not listed among {sorted(entries)}"
            if entries[key] is not _NO_VALUE:
                self._expect_value(key, entries[key])
        for key in list(self._model):
            self.delete(key.removeprefix(self._token))
        self.the_rows_are_the_model()

    def _expect_value(self, key: str, found: Any) -> None:
        assert same_json(self._model[key], found), (
            f"{key!r} was set to {str(self._model[key])[:300]!r}, found is {str(found)[:300]!r}"
        )

    def _key(self, ending: str) -> str:
        return f"{self._token}{ending}"

    async def _call(self, tool: str, key: str, *value: Any) -> Any:
        return await self._client.try_call(tool, key=key, **_named(value))

    async def _call_apart(self, tool: str, key: str, *value: Any) -> Any:
        """Over a connection of its own, for what comes at once."""
        return await self._butler.try_call(tool, {"key": key, **_named(value)})

    async def _list(self, prefix: str) -> Any:
        return await _listed(self._client, prefix)

    async def _all(self) -> Any:
        return await _entries(self._client, self._token)

    async def _set_at_once(self, key: str, values: list[Any]) -> Any:
        seen: list[Any] = []

        async def read() -> None:
            seen.append(await self._call_apart("state_get", key))

        async with trio.open_nursery() as nursery:
            for value in values:
                nursery.start_soon(self._call_apart, "state_set", key, value)
                nursery.start_soon(read)
        return seen

    async def _rows(self) -> Any:
        return await self._butler.database.rows(
            "SELECT key, value FROM state WHERE starts_with(key, %s)", (self._token,)
        )


def _named(value: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(["value"], value, strict=False))


async def test_the_state_store_keeps_its_history(explore: Explore, ecosystem: Ecosystem) -> None:
    """Of many calls in any order, also at once, each leaves what a dictionary would hold."""
    general = ecosystem["general"]
    async with open_conversation(general) as client:
        await explore(lambda: StoreMachine(general, client), steps=20)
