"""Frames: any text survives any split; whatever else comes is named, never an accident."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suites.daemon.generated import generated
from suites.daemon.wire import (
    FrameDecoder,
    LocalProtocolError,
    RemoteProtocolError,
    Violation,
    encode_frame,
)

pytestmark = pytest.mark.aside("the driver of the suite")

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


def drain(decoder: FrameDecoder) -> list[str]:
    """Every payload that is complete."""
    payloads = []
    while (payload := decoder.next_payload()) is not None:
        payloads.append(payload)
    return payloads


@generated(100)
@given(st.lists(TEXTS, max_size=5), st.booleans(), st.sampled_from([b"", b"\n", b" \r\n"]))
def test_round_trip_at_every_split_point(texts, lower_case, between):
    """What is encoded is decoded, byte for byte or wherever the stream is cut in two."""
    stream = between.join(encode_frame(text, lower_case=lower_case) for text in texts)
    for cut in range(len(stream) + 1):
        decoder = FrameDecoder()
        decoder.feed(stream[:cut])
        payloads = drain(decoder)
        decoder.feed(stream[cut:])
        payloads += drain(decoder)
        decoder.close()

        assert texts == payloads

    decoder, payloads = FrameDecoder(), []
    for byte in stream:
        decoder.feed(bytes([byte]))
        payloads += drain(decoder)

    assert texts == payloads


@generated(100)
@given(st.lists(st.binary(max_size=30), max_size=4))
@example([b"000002\xff\xff"])
@example([b"\xef\xbb\xbf000000"])
def test_arbitrary_bytes_raise_nothing_else(pieces):
    """Bytes of any kind give payloads or a RemoteProtocolError, and the error is final."""
    decoder, violation = FrameDecoder(max_characters=50), None
    try:
        for piece in pieces:
            decoder.feed(piece)
            drain(decoder)
    except RemoteProtocolError as error:
        violation = error
    decoder.feed(encode_frame("x"))
    try:
        drain(decoder)
        again = None
    except RemoteProtocolError as error:
        again = error

    assert violation in (None, again)


def test_the_length_counts_characters():
    """A payload of two characters and six bytes is announced as two."""
    assert b"000002\xe2\x82\xac\xe2\x82\xac" == encode_frame("€€")

    decoder = FrameDecoder()
    decoder.feed(encode_frame("€€") + encode_frame("x"))

    assert ["€€", "x"] == drain(decoder)


@pytest.mark.parametrize(
    ("data", "violation", "shown"),
    [
        (b"ZZZZZZ", Violation.PREFIX, "found b'ZZZZZZ' at byte 0"),
        (b"  00g", Violation.PREFIX, "found b'g' at byte 4"),
        (b"00 001x", Violation.PREFIX, "found b' 001x' at byte 2"),
        (b"000033", Violation.SIZE, "51 characters is announced, at most 50 are accepted"),
        (b"000002a\xff", Violation.ENCODING, "at byte 7: b'\\xff' (invalid start byte)"),
        (b"000001\xed\xa0\x80", Violation.ENCODING, "invalid continuation byte"),
    ],
)
def test_a_violation_says_what_was_found_and_where(data, violation, shown):
    """Wrong bytes are named with their place."""
    decoder = FrameDecoder(max_characters=50)
    decoder.feed(data)

    with pytest.raises(RemoteProtocolError) as caught:
        decoder.next_payload()

    assert violation is caught.value.violation
    assert shown in caught.value.observed


@pytest.mark.parametrize(
    ("data", "progress"),
    [
        (b"000", "read 3 of 6 prefix digits"),
        (b"000005", "read 0 of 5 payload characters"),
        ("000005(€".encode(), "read 2 of 5 payload characters"),
        ("000005(€".encode()[:-1], "read 1 of 5 payload characters"),
    ],
)
def test_an_end_inside_a_frame_says_how_far_it_got(data, progress):
    """The end of the stream inside a frame is reported otherwise than one between frames."""
    decoder = FrameDecoder()
    decoder.feed(data)

    assert decoder.next_payload() is None
    assert progress == decoder.progress
    with pytest.raises(RemoteProtocolError) as caught:
        decoder.close()
    assert (Violation.TRUNCATED, progress) == (caught.value.violation, caught.value.progress)


def test_what_cannot_be_a_frame_is_our_mistake():
    """Too long for six digits, or not encodable: a harness error, no product failure."""
    with pytest.raises(LocalProtocolError, match="16777216 characters do not fit"):
        encode_frame("x" * 16**6)
    with pytest.raises(LocalProtocolError, match="not encodable"):
        encode_frame("\ud800")
