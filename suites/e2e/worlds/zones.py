"""The zone each butler lives in: no two neighbours agree, and none of them is where the server is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["ZONES", "zone_of_environment", "zone_variable"]

#: Far apart, by parts of an hour, on both hemispheres, with clocks that change and clocks that do not.
ZONES: Final = (
    "Australia/Lord_Howe",
    "America/Havana",
    "Pacific/Chatham",
    "Pacific/Marquesas",
    "Europe/Dublin",
    "America/St_Johns",
    "Asia/Kathmandu",
)


def zone_variable(name: str) -> Mapping[str, str]:
    """The environment that puts a butler of this name into its zone."""
    return {"TZ": ZONES[zlib.adler32(name.encode()) % len(ZONES)]}


def zone_of_environment(environment: Mapping[str, str]) -> ZoneInfo:
    """The zone that a butler with this environment lives in; UTC where the machine knows no zones."""
    try:
        return ZoneInfo(environment.get("TZ") or "UTC")
    except ZoneInfoNotFoundError:
        return ZoneInfo("UTC")
