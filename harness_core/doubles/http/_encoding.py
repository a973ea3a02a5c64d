"""Bodies that arrive compressed, opened within bounds: a small body may unfold to any size."""

from __future__ import annotations

import zlib
from typing import Final

#: zlib's words for: gzip or zlib, whichever header is there.
_ANY_HEADER: Final = 47
_KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate"})


class BadBody(Exception):  # noqa: N818 - names what was wrong
    """A body that cannot be opened.

    Args:
        status: the HTTP status that says so.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


def decoded(body: bytes, encoding: str, *, limit_bytes: int) -> bytes:
    """The body without its content encoding.

    Raises:
        BadBody: unknown encoding, damaged or unfinished data, or more than ``limit_bytes``.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in _KNOWN:
        raise BadBody(f"content encoding {encoding!r} is not known here", status=415)
    opener = zlib.decompressobj(_ANY_HEADER)
    try:
        opened = opener.decompress(body, limit_bytes + 1)
    except zlib.error as error:
        raise BadBody(f"the {name} body is damaged: {error}", status=400) from error
    if len(opened) > limit_bytes:
        raise BadBody(f"the {name} body unfolds to more than {limit_bytes} bytes", status=413)
    if not opener.eof:
        raise BadBody(f"the {name} body ends early", status=400)
    return opened
