"""The OpenAPI document that a running service publishes, read as its callers read it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from harness_core.doubles.http import HttpClient

__all__ = ["OPEN_PATHS", "Document", "Operation", "live_document"]

#: What the contract leaves open to callers without a key.
OPEN_PATHS: Final = frozenset({"/health", "/openapi.json"})

_METHODS: Final = ("delete", "get", "head", "options", "patch", "post", "put", "trace")
_FIELD: Final = re.compile(r"\{(\w+)\}")

#: An id of the right form that does not exist.
_UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a document.

    Attributes:
        method: in capitals.
        path: with its ``{fields}``.
        responses: status → what the document says of the answer.
    """

    method: str
    path: str
    responses: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """``POST /episodes``."""
        return f"{self.method} {self.path}"

    def target(self, **values: str) -> str:
        """The path with its fields filled in; what is not given is an id that does not exist."""
        return _FIELD.sub(lambda match: values.get(match[1], _UNKNOWN), self.path)

    def matches(self, path: str) -> bool:
        """Whether a request to ``path`` was for this operation."""
        parts = _FIELD.split(self.path)
        # Every second part is the name of a field; the last one of a path may hold slashes.
        pattern = "".join(
            (".+" if part == "path" else "[^/]+") if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        )
        return re.fullmatch(pattern, path.partition("?")[0]) is not None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document.

    Attributes:
        service: whose.
        content: as it was answered.
        operations: every operation in it.
    """

    service: str
    content: Mapping[str, Any]
    operations: tuple[Operation, ...]

    def operation(self, method: str, path: str) -> Operation:
        """The operation that a request was for: of several, the one with the fewest fields.

        Raises:
            AssertionError: the document knows none.
        """
        found = [each for each in self.operations if each.method == method and each.matches(path)]
        known = ", ".join(each.name for each in self.operations)

        assert found, f"the document of {self.service} has no {method} {path}; it has {known}"
        return min(found, key=lambda each: (each.path.count("{"), -len(each.path)))

    def body_of(self, operation: Operation) -> dict[str, Any] | None:
        """The schema of the JSON that an operation takes; ``None`` for one that takes none."""
        item = self.content["paths"][operation.path][operation.method.lower()]
        content = item.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema is None or "$ref" not in schema:
            return schema
        name = schema["$ref"].rpartition("/")[2]
        found: dict[str, Any] = self.content["components"]["schemas"][name]
        return found

    def query_of(self, operation: Operation) -> dict[str, str]:
        """A value for each query parameter that an operation demands: its example, one of its kind, or an id."""
        item = self.content["paths"][operation.path]
        listed = [
            *item.get("parameters", ()),
            *item[operation.method.lower()].get("parameters", ()),
        ]
        return {
            each["name"]: _value(each.get("schema", {}))
            for each in listed
            if each.get("in") == "query" and each.get("required")
        }


def _value(schema: Mapping[str, Any]) -> str:
    if schema.get("enum"):
        return str(schema["enum"][0])
    if schema.get("examples"):
        return str(schema["examples"][0])
    if schema.get("type") == "array":
        return _value(schema.get("items", {}))
    return "1" if schema.get("type") in ("integer", "number") else _UNKNOWN


async def live_document(client: HttpClient) -> Document:
    """Fetch the document of a running service, without a key."""
    answer = await client.having(x_api_key=None).get("/openapi.json")

    assert answer.status == 200, f"expected the document without a key, found {answer}"
    answer.json()
    # A library that judges it asks for keys, and expects them to be missing.
    content = json.loads(answer.body)
    operations = tuple(
        Operation(method=method.upper(), path=path, responses=body.get("responses", {}))
        for path, item in content.get("paths", {}).items()
        for method, body in item.items()
        if method in _METHODS
    )
    return Document(service=client.name, content=content, operations=operations)
