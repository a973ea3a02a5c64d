"""The codec: what is read, what is refused and how far it got, what is written."""

import random
from fractions import Fraction

import pytest

from sexpd.frames import FrameError, FrameReader, frame
from sexpd.sexpr import Dotted, Keyword, ReadError, Symbol, read, write

VALUES = {
    "NIL": None,
    "()": None,
    "t": True,
    ":type": Keyword("TYPE"),
    ":|type|": Keyword("type"),
    ":|:a|": Keyword(":a"),
    r"|a\|b\\|": Symbol("a|b\\"),
    "foo": Symbol("FOO"),
    '"a \\"b\\" \\\\ c"': 'a "b" \\ c',
    '"ünïcode 🎈"': "ünïcode 🎈",
    "12": 12,
    "+12.": 12,
    "-1/2": Fraction(-1, 2),
    "4/2": 2,
    "1.5": 1.5,
    "1d3": 1000.0,
    "'a": [Symbol("QUOTE"), Symbol("A")],
    "(a . b)": Dotted([Symbol("A")], Symbol("B")),
    "(a . (b))": [Symbol("A"), Symbol("B")],
    "(a . nil)": [Symbol("A")],
    "(1 (2 ()) 3) ; comment": [1, [2, None], 3],
}


@pytest.mark.parametrize("text", VALUES)
def test_read(text):
    """Each spelling has the value it should, and survives being written."""
    assert VALUES[text] == read(text, depth=8)
    assert VALUES[text] == read(write(VALUES[text]), depth=8)


@pytest.mark.parametrize(
    "text",
    ["", " ", "(", ")", "(a", "'", "')", '"a', '"a\\', "|a", "a b", "(a .)", "(. a)", "(a . b c)",
     "#.(a)", "#'a", "`a", ",a", ":", "...", "1/0", "1e999", "((((((((( ", "a" * 300],
)
def test_refused(text):
    """What is not one s-expression of the subset is a ReadError, never another."""
    with pytest.raises(ReadError):
        read(text, depth=8)


def test_every_split_point():
    """A frame is read whichever way its bytes arrive."""
    texts = ["(:A 1)", '"ünïcode 🎈 ǆ"', '"' + "日" * 50 + '"']
    raw = b" \n".join(frame(text) for text in texts)
    for step in (1, 2, 3, 7, len(raw)):
        reader, found = FrameReader(limit_chars=100), []
        for at in range(0, len(raw), step):
            reader.feed(raw[at : at + step])
            while (payload := reader.next()) is not None:
                found.append(payload)
        assert texts == found
        assert not reader.inside


def test_length_counts_characters():
    """The prefix counts characters, upper case."""
    assert b"00000C" + '"ääääääääää"'.encode() == frame('"ääääääääää"')


@pytest.mark.parametrize(
    ("raw", "reported"),
    [
        (b"ZZZZZZ", "read 0 of 6"),
        (b"00 ", "read 2 of 6"),
        (b"FFFFFF", "the limit is 100"),
        (b"000005ab\xff", "read 2 of 5"),
    ],
)
def test_how_far(raw, reported):
    """An error says how far the frame got."""
    reader = FrameReader(limit_chars=100)
    reader.feed(raw)
    with pytest.raises(FrameError, match=reported):
        reader.next()


def test_noise():
    """Whatever bytes come, nothing but the codec's own errors is raised."""
    rng = random.Random(1)
    for _ in range(3000):
        reader = FrameReader(limit_chars=1000)
        reader.feed(rng.choice([b"", b"00000F", b"000003"]) + rng.randbytes(20))
        try:
            while (payload := reader.next()) is not None:
                read(payload, depth=10)
        except (FrameError, ReadError):
            pass


def test_noise_of_our_own_characters():
    """Texts of the characters that mean something raise nothing but ReadError, and come back."""
    rng = random.Random(2)
    for _ in range(20000):
        text = "".join(rng.choices("()\"\\'|:;#.ab1/- \nT", k=rng.randrange(1, 12)))
        try:
            value = read(text, depth=10)
        except ReadError:
            continue
        assert value == read(write(value), depth=20), text
