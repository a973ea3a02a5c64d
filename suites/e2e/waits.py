"""What the butlers owe and do not do, so that the next is not waited for as long (decision 0174)."""

from __future__ import annotations

from typing import Final

from harness_core.base.vain import VainWaits

__all__ = ["DUE", "ENDS"]

#: Of all tests of the run: ends of messages, which take as long as their model does, and all else.
ENDS: Final = VainWaits("e2e-ends", least_s=6.0, alike=True)
DUE: Final = VainWaits("e2e", least_s=6.0)
