"""The YAML that agents write: one meaning for each file, or a finding with its line."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_planning.strict_yaml import DEPTH, NODES, read_text, read_yaml
from workbench_planning.text import FILE_BYTES, SHOWN_CHARS, is_absent, shortened

FILE = "objectives.yaml"

VALUES = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "False": False,
    "12": 12,
    "-0": 0,
    "+3": 3,
    "1.5": 1.5,
    ".5": 0.5,
    "1.": 1.0,
    "1e3": 1000.0,
    "-1.5E-2": -0.015,
    "tRuE": "tRuE",
    "'yes'": "yes",
    '"010"': "010",
    "'2026-11-01'": "2026-11-01",
    "y": "y",
    "1.2.3": "1.2.3",
    "2026-11": "2026-11",
    "2026-01-01 bracket": "2026-01-01 bracket",
    "a:b": "a:b",
    "ünïcode 🎈": "ünïcode 🎈",
    "'<<'": "<<",
    "- 1\n- [2, {a: 3}]": [1, [2, {"a": 3}]],
    "a: |\n  two\n  lines\n": {"a": "two\nlines\n"},
}


@pytest.mark.parametrize("text", VALUES)
def test_value(text):
    """Each spelling means what YAML 1.2 says, where YAML 1.1 says nothing else."""
    document, findings = read_text(text or "~", file=FILE)

    assert [] == findings
    assert VALUES[text] == document.value
    assert type(VALUES[text]) is type(document.value)


AMBIGUOUS = [
    "yes", "No", "ON", "off", "010", "-007", "0o10", "0x1F", "0b11", "1_000", "1_0.5", "12:30",
    "190:20:30", "2026-11-01", "2026-11-01T10:00:00Z", "2026-1-1 1:00:00", "00", "01.5",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous(text):
    """What readers understand in two ways is a finding at its line; in quotes it is text."""
    document, findings = read_text(f"# first\na: 1\nb: {text}\n", file=FILE)

    assert document is None
    assert ["b (line 3)"] == [each.where for each in findings]
    assert text in findings[0].found
    assert {"a": 1, "b": text} == read_text(f"a: 1\nb: '{text}'\n", file=FILE)[0].value


REFUSED = {
    "a: 1\na: 2\n": ("a (line 2)", "a second time; it stands in line 1"),
    "a:\n  b: 1\n  'b': 2\n": ("a.b (line 3)", "line 2"),
    "a: !!float 1\n": ("a (line 1)", "a tag"),
    "a: !local x\n": ("a (line 1)", "a tag"),
    "a: ! x\n": ("a (line 1)", "a tag"),
    "!!python/object/apply:os.system ['id']\n": ("line 1", "a tag"),
    "a: &x 1\n": ("a (line 1)", "an anchor, &x"),
    "a: 1\n---\nb: 2\n": ("line 2", "a second document"),
    "a: 1\n...\n---\n": ("line 3", "a second document"),
    "%YAML 1.1\n---\na: 1\n": ("line 1", "a directive"),
    "%TAG ! tag:x,2000:\n---\na: 1\n": ("line 1", "a directive"),
    "a: .nan\n": ("a (line 1)", ".nan"),
    "a:\n- -.INF\n": ("a[0] (line 2)", "-.INF"),
    "a: 1e999\n": ("a (line 1)", "a number too large"),
    "a: " + "9" * 5000 + "\n": ("a (line 1)", "a number of 5000 characters"),
    "1: a\n": ("line 1", "the key 1"),
    "true: a\n": ("line 1", "the key True"),
    "~: a\n": ("line 1", "the key None"),
    "? [a, b]\n: c\n": ("line 1", "the key ['a', 'b']"),
    'a: "\\0"\n': ("a (line 1)", "U+0000"),
    'a: "\\e[2J"\n': ("a (line 1)", "U+001B"),
    'a: "\\N"\n': ("a (line 1)", "U+0085"),
    '"\\0": 1\n': ("line 1", "U+0000"),
    'a: "\\ud800"\n': ("line 1", "what cannot be read"),
    '"a b":\n  - yes\n': ("['a b'][0] (line 2)", "yes"),
    "a: [1, 2\nb: 3\n": ("line 2", "what cannot be read"),
    "a:\n\t- 1\n": ("line 2", "what cannot be read"),
    "a: b: c\n": ("line 1", "what cannot be read"),
    "a: 'x\u2028y'\n": ("line 1", "U+2028"),
    "a: x\x07\n": ("line 1", "what cannot be read"),
    "@a: 1\n": ("line 1", "what cannot be read"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    """What has no single meaning is one finding, at the place that has to be corrected."""
    document, findings = read_text(text, file=FILE)
    where, found = REFUSED[text]

    assert document is None
    assert [where] == [each.where for each in findings]
    assert found in findings[0].found
    assert findings[0].expected


def test_all_of_a_file_is_told():
    """One mistake hides no other."""
    text = "a: yes\nb: &x 1\nc: *x\nd: 010\nd: 1\n"
    _, findings = read_text(text, file=FILE)

    lines = ["a (line 1)", "b (line 2)", "c (line 3)", "d (line 4)", "d (line 5)"]
    assert lines == [each.where for each in findings]


BYTES = {
    "bom": (b"\xef\xbb\xbfa: 1\n", "line 1", "byte order mark"),
    "no utf-8": (b"a: 1\nb: \xff\n", "line 2", "0xff"),
    "utf-16": ("a: 1\n".encode("utf-16"), "line 1", "0xff"),
    "nul": (b"a: 1\nb: \0\n", "line 2", "U+0000"),
    "overlong": (b"a: \xc0\x80\n", "line 1", "0xc0"),
    "surrogate": (b"a: \xed\xa0\x80\n", "line 1", "0xed"),
    "long": (b"a: " + b"x" * FILE_BYTES, "", f"{FILE_BYTES + 3} bytes"),
    "huge": (b"[" * 1_000_000, "", "1000000 bytes"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name):
    """What is no plain UTF-8 text of bounded size is not parsed at all."""
    data, where, found = BYTES[name]
    document, findings = read_yaml(data, file=FILE)

    assert document is None
    assert [where] == [each.where for each in findings]
    assert found in findings[0].found


def test_longest_file():
    """A file of exactly the limit is read."""
    data = b"a: " + b"x" * (FILE_BYTES - 3)

    assert FILE_BYTES - 3 == len(read_yaml(data, file=FILE)[0].value["a"])


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends(end):
    """Lines end as they like; lines are counted alike."""
    document, findings = read_yaml(f"a: 1{end}b:{end}  c: 2{end}".encode(), file=FILE)

    assert [] == findings
    assert {"a": 1, "b": {"c": 2}} == document.value
    assert "b.c (line 3)" == document.where(("b", "c"))


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 50_000, "- " * 100_000, "? " * 50_000])
def test_deep(text):
    """Nesting beyond the limit ends the reading at once."""
    _, findings = read_text(text, file=FILE)

    assert 1 == len(findings)
    assert "levels" in findings[0].found or "cannot be read" in findings[0].found


def test_depth_at_the_limit():
    """Exactly as deep as allowed is allowed."""
    assert [] == read_text("[" * DEPTH + "]" * DEPTH, file=FILE)[1]
    assert 1 == len(read_text("[" * (DEPTH + 2) + "]" * (DEPTH + 2), file=FILE)[1])


def test_values_at_the_limit():
    """Exactly as many values as allowed are allowed."""
    assert [] == read_text("[" + "1," * (NODES - 1) + "]", file=FILE)[1]
    assert "more than" in read_text("[" + "1," * NODES + "]", file=FILE)[1][0].found


@pytest.mark.parametrize(
    "data", [None, b"", b" \n\t\r\n", b"\xef\xbb\xbf", "\u00a0\u2003".encode()]
)
def test_absent(data):
    """An empty file, or one of white space, is absent."""
    assert is_absent(data)


@pytest.mark.parametrize("data", [b"a", b"\0", b"\xff", b" " * (FILE_BYTES + 1)])
def test_present(data):
    """What holds something is there, whatever it is."""
    assert not is_absent(data)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")))
)
_TREES = st.recursive(
    _SCALARS,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.text("abcxyz", min_size=1), below, max_size=4)
    ),
    max_leaves=20,
)


def _written(value):
    """Flow YAML of a value, by rules of its own: texts in double quotes, keys too."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return "{" + ", ".join(f'"{key}": {_written(each)}' for key, each in value.items()) + "}"


@given(_TREES)
def test_what_is_written_is_read(value):
    """Every tree comes back as it was, numbers bit for bit."""
    document, findings = read_text(_written(value), file=FILE)

    # The parser's YAML has fewer characters than Unicode; those are refused, never changed.
    if document is None:
        assert all("cannot be read" in each.found or "U+" in each.found for each in findings)
    else:
        assert _written(value) == _written(document.value)


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))
)
def test_anything(data):
    """No bytes raise: there is a document or there are findings."""
    document, findings = read_yaml(data, file=FILE)

    assert (document is None) == bool(findings)


@given(st.from_regex(r"[-+.0-9eE_:xobnaifNAIF]{1,12}", fullmatch=True))
def test_plain_scalars_are_finite_numbers_or_texts(text):
    """Whatever looks like a number is one that is finite, or text, or a finding."""
    document, findings = read_text(f"a: {text}", file=FILE)
    if document is not None:
        value = document.value["a"] if isinstance(document.value, dict) else None

        assert not isinstance(value, float) or math.isfinite(value)
        assert isinstance(value, (float, int)) or any(each in str(value) for each in text)


def test_shortened():
    """A value stands on one line of bounded length, its beginning and its end kept."""
    assert "'a\\nb'" == shortened("a\nb")
    for value in ("a" * 78, "a" * 79 + "z", "a" * 5_000 + "z", [1] * 500, "\x00" * 200, "🎈" * 500):
        text = shortened(value)

        assert len(text) <= SHOWN_CHARS
        assert (repr(value) == text) == (len(repr(value)) <= SHOWN_CHARS)
        assert (repr(value)[:20], repr(value)[-20:]) == (text[:20], text[-20:])
