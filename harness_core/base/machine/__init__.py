"""What this machine has of what the harness needs, and the words for what is missing.

- ``_extras.py``: which of our extras are installed.
- ``_programs.py``: where the programs are that wheels bring.
- ``_libfaketime.py``: where the library is that gives a process another time of day.
- ``_postgres.py``: which PostgreSQL server would be used, and whether it can be.
- ``_space.py``: where the harness writes, whether there is room, and a full disk in one sentence.
- ``_namespaces.py``: whether an ordinary user may make namespaces.
- ``_cache.py``: the per-user cache directory, and locks between processes.

Container engines are in ``harness_core.infrastructure.engine``.
"""

from harness_core.base.machine._cache import cache_directory, locked
from harness_core.base.machine._extras import (
    brought_by,
    lack_of,
    missing_of,
    need_extra,
    need_extras,
    versions_of,
)
from harness_core.base.machine._libfaketime import find_libfaketime
from harness_core.base.machine._namespaces import cannot_make_namespaces
from harness_core.base.machine._postgres import (
    PostgresBinaries,
    cannot_run_postgres,
    find_postgres_binaries,
    server_account,
    usable_binaries,
)
from harness_core.base.machine._programs import find_program
from harness_core.base.machine._space import (
    MEMORY_FREE_BYTES,
    STATE_ELSEWHERE,
    Place,
    closed_to_others,
    disk_full,
    is_disk_full,
    lack_of_space,
    memory_place,
    places,
    state_place,
    writing,
)

__all__ = [
    "MEMORY_FREE_BYTES",
    "STATE_ELSEWHERE",
    "Place",
    "PostgresBinaries",
    "brought_by",
    "cache_directory",
    "cannot_make_namespaces",
    "cannot_run_postgres",
    "closed_to_others",
    "disk_full",
    "find_libfaketime",
    "find_postgres_binaries",
    "find_program",
    "is_disk_full",
    "lack_of",
    "lack_of_space",
    "locked",
    "memory_place",
    "missing_of",
    "need_extra",
    "need_extras",
    "places",
    "server_account",
    "state_place",
    "usable_binaries",
    "versions_of",
    "writing",
]
