"""What tokens cost: the price table of ``genai-prices``, and *unpriced* for models that are not in it."""

from __future__ import annotations

from functools import lru_cache

from harness_core.doubles.model._reply import Usage


@lru_cache(maxsize=4096)
def price_usd(model: str, usage: Usage) -> float | None:
    """USD of one call, or ``None`` for a model the price table does not know.

    ``None`` and never 0: an unknown model that counted as free would let a run spend for ever.
    """
    # Imported here: reading the table takes half a second, which a gateway that is about to
    # announce itself should not spend first.
    import genai_prices

    counted = genai_prices.Usage(
        # The table's input includes what was read from and written to the cache; the API's does not.
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    # Its makers' own price first; a model that several sell is found by its maker alone.
    makers = {"claude": "anthropic", "text-embedding-": "openai"}
    provider = next((maker for start, maker in makers.items() if model.startswith(start)), None)
    try:
        price = genai_prices.calc_price(counted, model, provider_id=provider)
    except LookupError:
        return None
    return float(price.total_price)
