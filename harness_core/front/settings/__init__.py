"""``[tool.staging_harness]`` of a project's ``pyproject.toml``: what it says of the fixtures.

- ``_tables.py``: every key, its type and its meaning.
- ``_read.py``: :func:`settings_of` a run, and what its paths are relative to.
"""

from harness_core.front.settings._read import home_of, pyproject_of, settings_of
from harness_core.front.settings._tables import OFFERED, DatabaseTable, ProcessTable, Settings

__all__ = [
    "OFFERED",
    "DatabaseTable",
    "ProcessTable",
    "Settings",
    "home_of",
    "pyproject_of",
    "settings_of",
]
