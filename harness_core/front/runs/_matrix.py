"""Contract x product, for people: short cells, and the reasons below them, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_core.base.screen import columns, stacked, tinted
from harness_core.front.runs._cells import Cell, Shows
from harness_core.front.runs._survey import Product

if TYPE_CHECKING:
    from harness_core.base.screen import Cell as Text
    from harness_core.base.screen import Shown


def render_matrix(products: Sequence[Product]) -> Shown:
    """One line for each contract, one column for each product; ``[3]`` is the note of that number."""
    notes: dict[str, int] = {}
    contracts = dict.fromkeys(each for product in products for each in product.cells)
    rows = [
        (contract, *(_text(product.cells[contract], notes) for product in products))
        for contract in contracts
    ]
    table = columns(rows, heads=["contract", *(product.name for product in products)])
    below = [f"[{number}] {why}" for why, number in notes.items()]
    sums = [
        f"{product.name}: {_sum(product)} in {product.seconds:.0f} s; {product.folder}"
        for product in products
    ]
    return stacked(table, *below, *sums)


def _text(cell: Cell, notes: dict[str, int]) -> Text:
    text = cell.text
    if cell.why:
        why = f"{cell.test}: {cell.why}" if cell.test else cell.why
        text += f" [{notes.setdefault(why, len(notes) + 1)}]"
    if cell.shows in {Shows.HOLDS, Shows.BROKEN}:
        return tinted(text, good=cell.shows is Shows.HOLDS)
    return text


def _sum(product: Product) -> str:
    shown = [cell.shows for cell in product.cells.values()]
    counts = [(shows, shown.count(shows)) for shows in Shows]
    return ", ".join(f"{count} {shows}" for shows, count in counts if count)
