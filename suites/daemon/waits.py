"""What a product owes and does not do, so that the next is not waited for as long."""

from __future__ import annotations

from typing import Final

from harness_core.base.vain import VainWaits

__all__ = ["DUE"]

#: Of all tests of the run.
DUE: Final = VainWaits("daemon", least_s=2.0)
