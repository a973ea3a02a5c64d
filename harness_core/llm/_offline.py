"""Mode ``offline``: the deterministic policy answers; no key, no network, no model."""

from __future__ import annotations

from harness_core.llm._backend import Answer, Call
from harness_core.llm._reply import Reply, Usage, prompt_tokens, reply_tokens
from harness_core.llm.policy import respond

__all__ = ["OfflineBackend"]


class OfflineBackend:
    """Answers from what the prompt holds, see :mod:`harness_core.llm.policy`."""

    name = "offline"
    charges = False

    async def answer(self, call: Call) -> Answer:
        """Answer one call; the same prompt always gets the same answer."""
        request = call.request
        blocks, stop_reason = respond(request, now=call.now)
        usage = Usage(input_tokens=prompt_tokens(request), output_tokens=reply_tokens(blocks))
        return Reply(blocks=blocks, stop_reason=stop_reason, usage=usage)
