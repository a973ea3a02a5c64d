"""OpenAI's embeddings API as a dialect, and the vectors of the rehearsed model.

The vectors are stand-ins: a digest of the model's name and the text, spread over a unit sphere.
Equal texts have equal vectors, any other two stand about at right angles, and the vector of fewer
dimensions is the beginning of the longer one. There is nothing of meaning in them: a search finds a text
by its very words alone.
"""

from __future__ import annotations

import array
import base64
import hashlib
import json
import math
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, structs

from harness_core.doubles.model._refusal import invalid
from harness_core.doubles.model._reply import Content, Reply, Usage, estimate_tokens
from harness_core.doubles.model._request import MessagesRequest, parse_fields, parse_request
from harness_core.doubles.model._stream import AnswerReader, parsed

#: Texts in one request.
_TEXTS: Final = 2048

#: Model → the length of its vectors; of any other, ``_DIMENSIONS``.
_LENGTHS: Final[Mapping[str, int]] = {"text-embedding-3-large": 3072}
_DIMENSIONS: Final = 1536

#: Its vectors have one length.
_RIGID: Final = "text-embedding-ada-002"

_Positive = Annotated[int, Meta(ge=1, description="a valid integer of at least 1")]
_Tokens = list[int]


class _Body(Struct):
    model: Annotated[str, Meta(min_length=1, description="a string of at least 1 character")]
    input: str | list[Any]
    dimensions: _Positive | None = None
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = None


def parse_embeddings(body: Mapping[str, Any]) -> MessagesRequest:
    """Read a request as a Messages request, each text a turn; raises ``Refusal`` 400 with the field."""
    read = parse_fields(body, _Body, dotted=False)
    longest = _LENGTHS.get(read.model, _DIMENSIONS)
    dimensions = read.dimensions or longest
    if dimensions > longest or (read.dimensions and read.model == _RIGID):
        problem = f"vectors of {read.model} have {longest} dimensions"
        raise invalid("dimensions", problem + (" or fewer" if read.model != _RIGID else ", always"))
    texts = _inputs(read.input)
    translated = {
        "model": read.model,
        "max_tokens": 1,
        "messages": [{"role": "user", "content": _shown(text)} for text in texts],
        "metadata": {"user_id": read.user} if read.user else {},
        "embedding": {"dimensions": dimensions, "tokens": not isinstance(texts[0], str)},
    }
    return structs.replace(parse_request(translated), dimensions=dimensions, received=body)


def embedded(request: MessagesRequest) -> Reply:
    """The rehearsed model's answer to a request of :func:`parse_embeddings`."""
    texts = _inputs(request.received["input"])
    tokens = sum(estimate_tokens(text) if isinstance(text, str) else len(text) for text in texts)
    vectors = (_vector(request.model, text, request.dimensions) for text in texts)
    return Reply(content=tuple(map(_block, vectors)), usage=Usage(input_tokens=max(1, tokens)))


def embedding_parts(reply: Reply, request: MessagesRequest, message_id: str) -> list[bytes]:  # noqa: ARG001 - this API gives its answers no id
    """An answer as this API sends it."""
    plain = request.received.get("encoding_format") != "base64"
    vectors = [block["vector"] for block in reply.content]
    data = [
        {"object": "embedding", "index": at, "embedding": _floats(vector) if plain else vector}
        for at, vector in enumerate(vectors)
    ]
    tokens = reply.usage.input_tokens
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return [
        json.dumps(
            {"object": "list", "data": data, "model": request.model, "usage": usage}
        ).encode()
    ]


class EmbeddingReader(AnswerReader):
    """Reads a provider's vectors while they pass."""

    def end(self) -> None:
        """All bytes have been seen."""
        self._take(parsed(self._whole))

    def _read(self, body: Mapping[str, Any]) -> None:
        if body.get("object") != "list":
            super()._read(body)
            return
        self.usage = Usage(input_tokens=int(body["usage"]["prompt_tokens"]))
        vectors = (each["embedding"] for each in sorted(body["data"], key=lambda e: e["index"]))
        content = [
            {"type": "embedding", "vector": vector} if isinstance(vector, str) else _block(vector)
            for vector in vectors
        ]
        self._blocks = dict(enumerate(map(dict, content)))
        self.stop_reason = "end_turn"
        self._finish()


def _inputs(given: str | Sequence[Any]) -> list[str | _Tokens]:
    """The texts, or lists of tokens, of one request."""
    if isinstance(given, str):
        texts: list[Any] = [given]
    elif given and type(given[0]) is int:
        texts = [given]
    else:
        texts = list(given)
    if not 1 <= len(texts) <= _TEXTS:
        raise invalid("input", f"Input should be one text, or an array of 1 to {_TEXTS} of them")
    strings = isinstance(texts[0], str)
    for at, text in enumerate(texts):
        parse_fields(text, str if strings else _Tokens, "input", at, dotted=False)
        if not text:
            raise invalid(f"input[{at}]", "Input should not be empty")
    return texts


def _shown(text: str | _Tokens) -> str:
    return text if isinstance(text, str) else json.dumps(text)


def _vector(model: str, text: str | _Tokens, dimensions: int) -> list[float]:
    """Numbers from -1 to 1 by a digest, scaled to unit length."""
    seed = json.dumps([model, text]).encode()
    digest = hashlib.shake_256(seed).digest(4 * dimensions)
    numbers = [number / 2**31 - 1 for number in struct.unpack(f"<{dimensions}I", digest)]
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return [number / length for number in numbers]


def _block(vector: Sequence[float]) -> Content:
    """A vector as a block: its 32-bit numbers, little end first, in Base64."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return {"type": "embedding", "vector": base64.b64encode(numbers.tobytes()).decode()}


def _floats(vector: str) -> list[float]:
    numbers = array.array("f", base64.b64decode(vector))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
