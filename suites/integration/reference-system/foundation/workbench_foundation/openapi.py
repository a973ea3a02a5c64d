"""What every operation answers besides its own, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from workbench_contract.problem import Problem
from workbench_foundation.keys import HEADER, OPEN

_SCHEME = "ApiKey"


def describe_app(app: FastAPI, *, health: type[BaseModel]) -> None:
    """Add the key, the refusals, and the body of ``/health`` to the app's document."""
    original = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        found = original()
        components = found.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema()
        components["securitySchemes"] = {
            _SCHEME: {"type": "apiKey", "in": "header", "name": HEADER}
        }
        for path, operations in found["paths"].items():
            for operation in operations.values():
                if path == "/health":
                    schema = {"$ref": f"#/components/schemas/{health.__name__}"}
                    operation["responses"]["200"] = _body("Healthy", schema)
                schema = {"$ref": "#/components/schemas/Problem"}
                operation["responses"]["421"] = _body("The request is for another host", schema)
                if path in OPEN:
                    continue
                operation["security"] = [{_SCHEME: []}]
                operation["responses"]["401"] = _body("The key is missing or wrong", schema)
        app.openapi_schema = found
        return found

    app.openapi = document  # type: ignore[method-assign]


def _body(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
