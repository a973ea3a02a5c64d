"""Holds every answer to the live document: status, media type, and the schema of the body.

A schema is read strictly: a field that the document does not declare is drift, whether the document
forbids it or is silent about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import jsonschema

from harness_core.doubles.http import HttpClient, Response
from suites.integration.comparing import expect_times
from suites.integration.document import Document, Operation

__all__ = ["Conforming", "strict"]


class Conforming:
    """Asks a service and checks each answer.

    Attributes:
        seen: (operation, status) → how often it was answered so.
    """

    def __init__(self, client: HttpClient, document: Document) -> None:
        self.client = client
        self.document = document
        self._components = strict(document.content.get("components", {}))
        self.seen: Counter[tuple[str, int]] = Counter()

    async def ask(self, method: str, path: str, **options: Any) -> Response:
        """One request; its answer is what the document says.

        The options are those of :meth:`HttpClient.request`; a header of ``None`` is left out.
        """
        changes = {
            name.replace("-", "_"): value for name, value in options.pop("headers", {}).items()
        }
        answer = await self.client.having(**changes).request(method, path, **options)
        self.check(method, path, answer)
        return answer

    def check(self, method: str, path: str, answer: Response) -> None:
        """Assert that one answer is what the document says."""
        operation = self.document.operation(method, path)
        self.seen[operation.name, answer.status] += 1
        documented = operation.responses.get(str(answer.status))
        known = ", ".join(operation.responses)

        assert documented is not None, f"{operation.name} documents {known}, and answers {answer}"
        content = documented.get("content", {})
        if not content:
            assert not answer.body or answer.status == 401, f"a body that is undocumented: {answer}"
            return
        assert answer.content_type in content, (
            f"{operation.name} documents {', '.join(content)} with {answer.status}, and answers "
            f"{answer.content_type!r}: {answer}"
        )
        schema = content[answer.content_type].get("schema")
        if schema and answer.content_type.endswith("json"):
            self._check_body(operation, answer, schema)

    def _check_body(self, operation: Operation, answer: Response, schema: Any) -> None:
        whole = {**strict(schema), "components": self._components}
        validator = jsonschema.Draft202012Validator(
            whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
        body = answer.json()
        wrong = [
            f"{'/'.join(map(str, error.absolute_path)) or 'the whole'}: {error.message[:300]}"
            for error in validator.iter_errors(body)
        ]

        assert wrong == [], f"{operation.name} answers another body than it documents: {answer}"
        if answer.ok:
            expect_times(body, what=operation.name)


def strict(schema: Any) -> Any:
    """The same schema, in which an object has no other fields than it declares.

    Parts of an ``allOf`` see only some of the fields each, so they stay as they are.
    """
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {
        key: value if key in {"allOf", "const", "default", "enum", "examples"} else strict(value)
        for key, value in schema.items()
    }
    open_ended = {"additionalProperties", "allOf", "patternProperties", "unevaluatedProperties"}
    if isinstance(made.get("properties"), Mapping) and not open_ended & set(made):
        made["additionalProperties"] = False
    return made
