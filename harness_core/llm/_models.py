"""Which models a run may ask for, whatever its subject wants."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_core.llm._refusal import Refusal
from harness_core.llm._request import MessagesRequest

__all__ = ["ModelRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRule:
    """A rule on models.

    Attributes:
        allowed: models that may be asked for; empty allows all.
        forced: asked for in place of whatever the caller names; empty leaves it be.
    """

    allowed: tuple[str, ...] = ()
    forced: str = ""

    def apply(self, request: MessagesRequest, raw: bytes) -> tuple[MessagesRequest, bytes]:
        """The request and body to pass on.

        Raises:
            Refusal: 403, which clients do not retry, for a model that is not allowed.
        """
        wanted = self.forced or request.model
        if self.allowed and wanted not in self.allowed:
            allowed = ", ".join(self.allowed)
            message = f"model {wanted!r} is not allowed in this run; allowed: {allowed}"
            raise Refusal(403, message, reason="model_not_allowed")
        if wanted == request.model:
            return request, raw
        body: Mapping[str, Any] = {**request.body, "model": wanted}
        changed = dataclasses.replace(request, model=wanted, body=body)
        return changed, json.dumps(body).encode()
