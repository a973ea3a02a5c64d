"""A generated input that nothing answers is not made smaller for minutes, one that is answered wrongly is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.daemon.generated import generated
from suites.daemon.wire import RemoteProtocolError, Violation

pytestmark = pytest.mark.aside("how the suite's own inputs are generated")


def test_a_silence_is_waited_for_a_few_times() -> None:
    """Three examples in full, and the one that is shown once more."""
    waits: list[list[int]] = []

    @generated(40)
    @given(numbers=st.lists(st.integers(), min_size=4))
    def silent(numbers: list[int]) -> None:
        waits.append(numbers)
        raise RemoteProtocolError(Violation.SILENT, observed="10 s passed without an answer")

    with pytest.raises(RemoteProtocolError, match="without an answer"):
        silent()

    assert 2 <= len(waits) <= 5, f"a silence is waited for 5 times at most: found {len(waits)}"


def test_a_wrong_answer_is_made_small() -> None:
    """As small as it gets."""
    shown: list[list[int]] = []

    @generated(40)
    @given(numbers=st.lists(st.integers(), min_size=4))
    def wrong(numbers: list[int]) -> None:
        shown.append(numbers)
        assert max(numbers) < 100, "an answer is another"

    with pytest.raises(AssertionError, match="an answer is another"):
        wrong()

    assert [0, 0, 0, 100] == sorted(shown[-1]), f"expected the smallest, found {shown[-1]}"
