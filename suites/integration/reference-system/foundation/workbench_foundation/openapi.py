"""What every operation answers besides its own, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from workbench_contract.problem import Problem
from workbench_foundation.keys import HEADER, OPEN

_SCHEME = "ApiKey"


def describe_app(app: FastAPI, *, health: type[BaseModel], away: str = "") -> None:
    """Add the key, the refusals, and the body of ``/health`` to the app's document.

    Args:
        app: whose every operation refuses what is malformed in one way.
        health: the body of ``/health``.
        away: what any operation may lack, and answers 503 then.
    """
    app.add_exception_handler(RequestValidationError, _malformed)
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
                if "requestBody" in operation:
                    unread = _body("The body cannot be read at all", schema)
                    operation["responses"].setdefault("400", unread)
                if away:
                    operation["responses"].setdefault("503", _body(away, schema))
        app.openapi_schema = found
        return found

    app.openapi = document  # type: ignore[method-assign]


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    """What is wrong, and where; what was sent is not repeated, since it may be no JSON."""
    assert isinstance(error, RequestValidationError)
    found = [
        {
            "loc": [_shown(part) for part in each["loc"]],
            "msg": _shown(each["msg"]),
            "type": each["type"],
        }
        for each in error.errors()
    ]
    return JSONResponse({"detail": found}, status_code=422)


def _shown(part: str | int) -> str | int:
    """A name of the caller's, which may hold half of a surrogate pair."""
    return part if isinstance(part, int) else part.encode("utf-8", "replace").decode("utf-8")


def _body(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
