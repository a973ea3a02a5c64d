"""Bodies that arrive compressed, opened within bounds: a small body may unfold to any size."""

from __future__ import annotations

import zlib
from typing import Final

#: zlib's words for: gzip or zlib, whichever header is there.
_ANY_HEADER: Final = 47
_KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate"})


class BadRequest(Exception):  # noqa: N818 - names what was wrong
    """A request that cannot be read.

    Args:
        problem: what is wrong with it.
        status: the HTTP status that says so; 0 where no answer can be given.
        body: what came of its body.
    """

    def __init__(self, problem: str, *, status: int, body: bytes = b"") -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.body = body


def decoded(body: bytes, encoding: str, *, limit_bytes: int) -> bytes:
    """The body without its content encoding.

    Raises:
        BadRequest: unknown encoding, damaged or unfinished data, or more than ``limit_bytes``.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in _KNOWN:
        problem = f"content encoding {encoding!r} is not known here"
        raise BadRequest(problem, status=415, body=body)
    opener = zlib.decompressobj(_ANY_HEADER)
    try:
        opened = opener.decompress(body, limit_bytes + 1)
    except zlib.error as error:
        raise BadRequest(f"the {name} body is damaged: {error}", status=400, body=body) from error
    if len(opened) > limit_bytes:
        problem = f"the {name} body unfolds to more than {limit_bytes} bytes"
        raise BadRequest(problem, status=413, body=body)
    if not opener.eof:
        raise BadRequest(f"the {name} body ends early", status=400, body=body)
    return opened
