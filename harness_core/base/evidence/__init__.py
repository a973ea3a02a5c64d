"""What a test leaves for its reader: one directory, secrets redacted when written.

- ``_directory.py``: :class:`Evidence`, a directory that writes text, JSON and lines.
- ``_redaction.py``: :class:`Redactor`, known secrets and secret-shaped text replaced at write.
- ``_failure.py``: :func:`failure_text`, where the evidence lies and the command that reruns a test.
"""

from harness_core.base.evidence._directory import Evidence, open_evidence, writing_evidence
from harness_core.base.evidence._failure import failure_text
from harness_core.base.evidence._redaction import REDACTED, Redactor

__all__ = ["REDACTED", "Evidence", "Redactor", "failure_text", "open_evidence", "writing_evidence"]
