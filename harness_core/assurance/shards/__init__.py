"""Shards: one run's tests, or planted faults, divided among several machines.

- ``_split.py``: :class:`Shard` (``2/3``) and which names belong to it, balanced by duration.
- ``_durations.py``: the JSON file of measured durations; read, brought up to date, merged.
- ``_plugin.py``: ``--shard`` and ``--durations-file`` of pytest.

Source: ``docs/project/ci.md``, decision 0121.
"""

from harness_core.assurance.shards._durations import (
    Durations,
    merge_durations,
    part_of,
    read_durations,
    update_durations,
)
from harness_core.assurance.shards._plugin import add_options, configure
from harness_core.assurance.shards._split import Shard, names_of

__all__ = [
    "Durations",
    "Shard",
    "add_options",
    "configure",
    "merge_durations",
    "names_of",
    "part_of",
    "read_durations",
    "update_durations",
]
