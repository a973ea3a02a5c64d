"""A gateway in this process, and the official client of OpenAI that asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import openai

from harness_core.doubles.model import GatewayClient
from harness_core.doubles.model._backend import Backend
from harness_core.tests.model.served import KEY, served

MODEL: Final = "gpt-5-mini"


@asynccontextmanager
async def asked(
    backend: Backend | None = None, *, key: str = KEY, **options: Any
) -> AsyncIterator[tuple[openai.AsyncOpenAI, GatewayClient]]:
    """A gateway as ``served`` makes it, the client with its key, and its control API."""
    async with (
        served(backend, **options) as (http, control),
        openai.AsyncOpenAI(**client_options(http, key=key)) as client,
    ):
        yield client, control


def client_options(http: httpx.AsyncClient, *, key: str = KEY) -> dict[str, Any]:
    """What makes a client of the SDK ask the gateway that another client asks; it asks once."""
    url = str(http.base_url).rstrip("/")
    return {"base_url": f"{url}/v1", "api_key": key, "max_retries": 0, "timeout": 20}
