"""A mistake in what people write is one :class:`BadInput`: place, found, expected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct, field

from harness_core.assurance.conformance import check_reader, to_toml
from harness_core.base.errors import BadInput
from harness_core.base.reading import (
    JSON_WORDS,
    Misfit,
    SharedTable,
    Table,
    Texts,
    check_distinct,
    convert,
    json_value,
    like,
    parse,
    read_json,
    read_toml,
)


class Port(Table, frozen=True):
    """A part of a file."""

    number: Annotated[int, Meta(ge=1, le=65535)]
    family: Literal["ipv4", "ipv6"] = "ipv4"
    names: tuple[str, ...] = ()


class Tagged(Struct, tag="tagged"):
    """One that says what it is."""

    text: str = ""


class Service(Table, frozen=True):
    """A file."""

    name: Annotated[str, Meta(min_length=1)]
    ports: list[Port]
    by_name: dict[str, Port] = field(default_factory=dict)
    ready_s: Annotated[float, Meta(ge=0, description="seconds from 0 on")] | None = None
    env: dict[str, str] = field(default_factory=dict)
    either: str | list[str] = ""
    share: Annotated[float, Meta(ge=0)] = 0.0
    tagged: Tagged | None = None

    def __post_init__(self) -> None:
        if self.name in self.env:
            raise Misfit("env", self.name, expected="no variable of its own name")
        if self.name == "nameless":
            raise Misfit("name", expected="a name", found="none")


GOOD = {"name": "web", "ports": [{"number": 80}]}


def test_what_is_right_is_read() -> None:
    """With the defaults of what is left out."""
    assert Service(name="web", ports=[Port(number=80)]) == convert(GOOD, Service, where="x")


@pytest.mark.parametrize(
    ("changes", "key", "found", "expected"),
    [
        ({"name": 3}, "name", 3, "a text that is not empty"),
        ({"name": ""}, "name", "", "a text that is not empty"),
        ({"name": None}, "name", None, "a text that is not empty"),
        ({"ports": {}}, "ports", {}, "a list"),
        ({"ports": [80]}, "ports[0]", 80, "a table with number"),
        ({"ports": [{}]}, "ports[0].number", None, "a whole number from 1 to 65535"),
        ({"ports": [{"number": True}]}, "ports[0].number", True, "a whole number from 1 to 65535"),
        ({"ports": [{"number": 1.5}]}, "ports[0].number", 1.5, "a whole number from 1 to 65535"),
        ({"ports": [{"number": 0}]}, "ports[0].number", 0, "a whole number from 1 to 65535"),
        (
            {"ports": [{"number": 1}, {"number": 1, "family": "x"}]},
            "ports[1].family",
            "x",
            "'ipv4' or 'ipv6'",
        ),
        ({"ports": [{"number": 1, "names": ["a", 2]}]}, "ports[0].names[1]", 2, "a text"),
        ({"ready_s": -1}, "ready_s", -1, "seconds from 0 on"),
        ({"ready_s": "soon"}, "ready_s", "soon", "seconds from 0 on"),
        ({"share": -1}, "share", -1, "a number from 0 on"),
        ({"env": {"A": "x", "B": 3}}, "env.B", 3, "a text"),
        ({"env": {3: "x"}}, "env", {3: "x"}, "a table"),
        (
            {"by_name": {"a": {"number": 1}, "b": {"number": 0}}},
            "by_name.b.number",
            0,
            "a whole number from 1 to 65535",
        ),
        ({"by_name": {"a": {"number": 1}, "b": {"numbr": 1, "number": 1}}}, "by_name.b.numbr", 1,
         "one of number, family, names"),
        ({"either": 3}, "either", 3, "a text or a list"),
        ({"either": [3]}, "either[0]", 3, "a text"),
        ({"tagged": {"type": "x"}}, "tagged.type", "x", "'tagged'"),
        ({"env": {"web": "x"}}, "env.web", "x", "no variable of its own name"),
        ({"name": "nameless"}, "name", "none", "a name"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(changes, key, found, expected) -> None:
    """By its place in the file's own words, by what stands there, and by what would be right."""
    with pytest.raises(BadInput) as caught:
        convert(GOOD | changes, Service, where="service.toml")

    error = caught.value
    assert ("service.toml", key, found, expected) == (
        error.where,
        error.key,
        error.found,
        error.expected,
    )


def test_a_misspelt_key_is_shown_with_the_right_one() -> None:
    """What was probably meant stands behind the keys there are."""
    with pytest.raises(BadInput) as caught:
        convert({"number": 1, "famly": "ipv6"}, Port, where="port.toml")

    assert str(caught.value) == (
        "cannot read port.toml: famly: found 'ipv6', expected one of number, family, names."
        " Did you mean family?"
    )


def test_a_long_value_is_shown_in_part() -> None:
    """One line is enough to find it."""
    with pytest.raises(BadInput) as caught:
        convert({"number": "x" * 1000}, Port, where="port.toml")

    assert len(str(caught.value.found)) < 250


def test_those_with_words_of_their_own_are_given_the_place() -> None:
    """From the value around, in their names of types, and whether the key is there at all."""
    with pytest.raises(Misfit) as caught:
        parse({}, Port, at=("ports", 3), words=JSON_WORDS)
    with pytest.raises(Misfit) as other:
        parse([], Port, words=JSON_WORDS)

    assert ("ports[3].number", True) == (caught.value.key, caught.value.missing)
    assert ("", "an object with number", False) == (
        other.value.key,
        other.value.expected,
        other.value.missing,
    )


@pytest.mark.parametrize(
    ("read", "text"), [(read_toml, "a ="), (read_json, "{"), (read_json, None), (read_toml, None)]
)
def test_a_file_that_cannot_be_read_is_named(read, text, tmp_path) -> None:
    """Whether it is not there or is not what its name says."""
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)

    with pytest.raises(BadInput) as caught:
        read(path, dict[str, Any])

    assert (str(path), "") == (caught.value.where, caught.value.key)


def test_a_body_that_is_no_json_is_shown() -> None:
    """Its beginning, whatever bytes it is made of."""
    with pytest.raises(BadInput) as caught:
        json_value(b"{\xff", where="request body")

    assert ("request body", "{\ufffd", "JSON") == (
        caught.value.where,
        caught.value.found,
        caught.value.expected,
    )


def test_every_mistake_of_a_hurried_person_is_named(tmp_path) -> None:
    """Each key misspelt or left out, each value of another kind."""
    path = tmp_path / "service.toml"
    content = GOOD | {"by_name": {"a": {"number": 1, "family": "ipv6"}}, "ready_s": 1.0}

    assert 10 < check_reader(
        lambda: read_toml(path, Service),
        path,
        content=content,
        write=to_toml,
        named_by_the_author=("by_name.*",),
    )


class Row(Table, frozen=True):
    """A row of a file with paths."""

    id: Annotated[str, like("[a-z]+")]
    file: Path | None = None
    words: Texts = ()

    def __post_init__(self) -> None:
        check_distinct(self, "words")


class Rows(Table, frozen=True):
    """A file with paths."""

    row: tuple[Row, ...]


@pytest.mark.parametrize(
    ("row", "key", "expected"),
    [
        ({"id": "a", "words": ["x", "x"]}, "row[0](a).words", "a list without repetition"),
        ({"id": "a", "words": ["x", " "]}, "row[0](a).words[1]", "a text that is not empty"),
        ({"id": "a", "file": 3}, "row[0](a).file", "a path relative to the file"),
        ({"id": "A"}, "row[0].id", "a text like [a-z]+"),
        ({"id": "a\n"}, "row[0].id", "a text like [a-z]+"),
    ],
)
def test_a_row_is_named_by_its_id(row, key, expected) -> None:
    """A number says little of a file with a hundred rows."""
    with pytest.raises(BadInput) as caught:
        convert({"row": [row]}, Rows, where="rows.toml", named_by="id")

    assert (key, expected) == (caught.value.key, caught.value.expected)


def test_a_path_is_relative_to_its_file(tmp_path) -> None:
    """Wherever the reader runs."""
    (tmp_path / "rows.toml").write_text('row = [{ id = "a", file = "x/y" }]')

    assert tmp_path / "x/y" == read_toml(tmp_path / "rows.toml", Rows).row[0].file


class Inner(SharedTable, frozen=True):
    """A part of it."""

    schedule: str = ""


class Shared(SharedTable, frozen=True):
    """A file with other readers."""

    name: str
    inner: Inner = Inner()
    rows: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({"nmae": "x"}, "nmae"),
        ({"name": "x", "innxr": {}}, "innxr"),
        ({"name": "x", "inner": {"schedxle": "x"}}, "inner.schedxle"),
        ({"name": "x", "rows": [{}, {"schedxle": "x"}]}, "rows[1].schedxle"),
        ({"name": "x", "inner": {"scheduler": "x"}, "other": 3}, ""),
        ({"name": "x", "inner": {"schedule": "x", "schedxle": "x"}}, ""),
    ],
)
def test_a_shared_file_may_have_other_keys(content, key) -> None:
    """Only one that is nearly a known one, where that is missing, is a mistake."""
    if not key:
        assert "x" == convert(content, Shared, where="shared.toml").name
        return
    with pytest.raises(BadInput, match="Did you mean") as caught:
        convert(content, Shared, where="shared.toml")

    assert key == caught.value.key
