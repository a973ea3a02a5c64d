"""Request ids sort by time."""

from butlers.inbox import uuid7


def test_request_ids_are_version_7_and_differ() -> None:
    """Version and variant bits are those of RFC 9562."""
    ids = {uuid7() for _ in range(100)}

    assert 100 == len(ids)
    assert {(7, "specified in RFC 4122")} == {(i.version, i.variant) for i in ids}
