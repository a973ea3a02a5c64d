"""Known failures of a product: a file beside its subject file lists them, each with its reason.

- ``_file.py``: ``known.toml``, read; which row is about which test.
- ``_hooks.py``: the pytest hooks: a listed test that fails as said is *known*, one that passes fails.

Source: ``docs/how-to/known.md``.
"""

from harness_core.front.known._file import Known, KnownFile, KnownRows, known_file, read_known
from harness_core.front.known._hooks import KnownHooks

__all__ = ["Known", "KnownFile", "KnownHooks", "KnownRows", "known_file", "read_known"]
