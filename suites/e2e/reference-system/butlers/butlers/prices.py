"""What model calls cost, for a session that ends before its runtime says so."""

from __future__ import annotations

from collections.abc import Mapping

from butlers import faults

#: USD per million tokens: input, output, written to the cache, read from it.
_PRICES = {
    "claude-haiku-4-5": (1.0, 5.0, 1.25, 0.1),
    "claude-sonnet-4-5": (3.0, 15.0, 3.75, 0.3),
}
_COUNTS = (
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
)


def cost_of(model: str | None, counts: Mapping[str, int]) -> float | None:
    """USD of so many tokens, by kind; None for a model that has no price here."""
    prices = next((p for name, p in _PRICES.items() if (model or "").startswith(name)), None)
    if prices is None:
        return None
    if faults.on("cache-prices-exchanged") and "sonnet" in str(model):
        prices = (*prices[:2], prices[3], prices[2])
    return sum(counts.get(kind, 0) * usd for kind, usd in zip(_COUNTS, prices, strict=True)) / 1e6
