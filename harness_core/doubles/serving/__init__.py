"""HTTP as the harness itself serves it, by starlette and hypercorn: the model gateway, the live page.

- ``_serve.py``: :func:`serve_http`, an ASGI application on a socket that listens.
- What an application is made of is starlette's; it has these names here and is imported nowhere else.

The extras of who serves (``gateway``, ``ui``) bring both libraries.
"""

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness_core.doubles.serving._serve import serve_http

__all__ = [
    "ASGIApp",
    "HTMLResponse",
    "HTTPException",
    "Headers",
    "JSONResponse",
    "Message",
    "MutableHeaders",
    "PlainTextResponse",
    "Receive",
    "Request",
    "Response",
    "Route",
    "Scope",
    "Send",
    "Starlette",
    "serve_http",
]
