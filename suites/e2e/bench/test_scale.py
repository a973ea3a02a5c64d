"""The table of the scale benchmark says truly whether a butler more costs more among many."""

from __future__ import annotations

import re

import pytest

from suites.e2e.bench.scale import Sample, name_of, table, word_of

pytestmark = pytest.mark.aside("the table of the benchmark")


@pytest.mark.parametrize(
    ("last_boot_s", "verdict"),
    [(28.0, "boot s per added butler does not grow"), (60.0, "boot s per added butler GROWS")],
)
def test_growth_is_judged_by_what_each_added_butler_costs(last_boot_s: float, verdict: str) -> None:
    """4 → 16 → 48 butlers at half a second each is linear; the same with a steeper end is not."""
    samples = [
        Sample(butlers=count, boot_s=boot_s, cpu_s=count, message_s=1.0, own_mib=60.0 * count)
        for count, boot_s in ((4, 4.0), (16, 10.0), (48, last_boot_s))
    ]
    text = table(samples)

    assert verdict in text
    assert "500.0 ms" in text
    assert re.search(r"^ +16 +10\.00", text, re.MULTILINE)
    assert "PSS MiB per added butler does not grow: last step 1.00 x the first" in text


@pytest.mark.parametrize(
    ("messages_s", "verdict"),
    [
        ((1.48, 1.36, 1.42), "message s per added butler does not grow: as in the last step, all"),
        ((1.48, 1.36, 4.42), "message s per added butler GROWS: last step inf x the first"),
    ],
)
def test_chance_is_no_growth(messages_s: tuple[float, ...], verdict: str) -> None:
    """A first step that went down by chance convicts no last one of some milliseconds."""
    samples = [
        Sample(butlers=count, boot_s=count, cpu_s=count, message_s=message_s, own_mib=60.0 * count)
        for count, message_s in zip((4, 16, 48), messages_s, strict=True)
    ]

    assert verdict in table(samples)


def test_generated_butlers_have_names_and_words_of_their_own() -> None:
    """No two of a hundred butlers share a name or the beginning of their word."""
    numbers = range(1, 100)

    assert 99 == len({name_of(number) for number in numbers})
    assert 99 == len({word_of(number)[:6] for number in numbers})
