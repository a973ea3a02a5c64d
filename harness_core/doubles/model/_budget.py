"""The hard limit of a run: money is reserved before a call and settled after it.

A call may cost its input and ``max_tokens`` of output; that much is set aside before it starts, so
that calls in flight can never add up to more than the limit. A call that would fit if others were
settled waits for them; a call that cannot fit any more is refused at once.
"""

from __future__ import annotations

import math

import trio

from harness_core.doubles.model._refusal import Refusal

#: Sums of a few hundred float prices drift by far less than this.
_DUST_USD = 1e-9


class Budget:
    """What a run may spend.

    Args:
        limit_usd: the limit; 0 allows nothing that costs.
    """

    def __init__(self, limit_usd: float) -> None:
        if not math.isfinite(limit_usd) or limit_usd < 0:
            message = f"a budget is a number of USD from 0 on, not {limit_usd!r}"
            raise ValueError(message)
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self.reserved_usd = 0.0
        self.refused = 0
        self._settlement = trio.Event()

    async def reserve(self, amount_usd: float) -> None:
        """Set money aside for a call, waiting while only calls in flight stand in the way.

        Raises:
            Refusal: 402, which Claude Code does not retry; names the sums.
        """
        while self.spent_usd + amount_usd <= self.limit_usd + _DUST_USD:
            if self.spent_usd + self.reserved_usd + amount_usd <= self.limit_usd + _DUST_USD:
                self.reserved_usd += amount_usd
                return
            await self._settlement.wait()
        self.refused += 1
        message = (
            f"budget exceeded: the run has spent {self.spent_usd:.4f} USD of"
            f" {self.limit_usd:.4f} USD, holds {self.reserved_usd:.4f} USD for calls in flight,"
            f" and this call may cost {amount_usd:.4f} USD (its input and max_tokens of output)."
            " Raise the limit with --llm-budget-usd, lower max_tokens, or run fewer scenarios."
        )
        raise Refusal(402, message, reason="budget_exceeded")

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Replace what was set aside for a call by what it cost; once for each call."""
        self.reserved_usd = max(0.0, self.reserved_usd - reserved_usd)
        self.spent_usd += spent_usd
        settlement, self._settlement = self._settlement, trio.Event()
        settlement.set()
