"""What a PostgreSQL server of ours is set to, and how a run changes that.

Sized and set for tests: small memory, no fsync. Whatever a program could notice is left as
PostgreSQL has it by default (docs/reference/postgres.md lists what is not).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Final

from harness_core.base.errors import BadInput

#: ``name=value`` words, as a shell would split them.
SETTINGS_VARIABLE: Final = "HARNESS_POSTGRES_SETTINGS"

#: Of servers on this machine and in containers. Small enough that a server costs 40 MB; enough for
#: a dozen services with pools of ten.
COMMON_SETTINGS: Final[Mapping[str, str]] = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # a worker inside a template would block its clone for seconds
    "jit": "off",
    "timezone": "UTC",
    # What initdb writes into the file that ours replaces; built in is "simple".
    "default_text_search_config": "pg_catalog.english",
}

_NAME: Final = re.compile(r"[A-Za-z_][\w.]*")


def settings_from_environment() -> dict[str, str]:
    """What ``HARNESS_POSTGRES_SETTINGS`` asks for, e.g. ``wal_level=logical jit=on``.

    Raises:
        BadInput: a word of it is no ``name=value``.
    """
    text = os.environ.get(SETTINGS_VARIABLE, "")
    expected = "NAME=VALUE words, e.g. wal_level=logical"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadInput(
            "environment", key=SETTINGS_VARIABLE, found=text, expected=expected
        ) from error
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise BadInput("environment", key=SETTINGS_VARIABLE, found=word, expected=expected)
        settings[name] = value
    return settings
