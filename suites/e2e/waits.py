"""What the butlers owe and do not do, so that the next is not waited for as long."""

from __future__ import annotations

from typing import Final

from harness_core.base.vain import VainWaits

__all__ = ["DUE"]

#: Of all tests of this process.
DUE: Final = VainWaits(least_s=6.0)
