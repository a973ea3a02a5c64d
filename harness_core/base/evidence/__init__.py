"""What a test leaves for its reader: one directory, secrets redacted when written.

- ``_directory.py``: :class:`Evidence`, a directory that writes text, JSON and lines.
- ``_redaction.py``: :class:`Redactor`, known secrets and secret-shaped text replaced at write.
- ``_story.py``: :func:`tell`, what a test saw, as rows that any reader can draw.
- ``_failure.py``: :func:`failure_text`, where the evidence lies and the command that reruns a test.
"""

from harness_core.base.evidence._directory import (
    Evidence,
    open_evidence,
    safe_name,
    writing_evidence,
)
from harness_core.base.evidence._failure import failure_text
from harness_core.base.evidence._redaction import REDACTED, Redactor
from harness_core.base.evidence._story import (
    STORY,
    Curve,
    Field,
    Frame,
    Link,
    Message,
    Moment,
    Plot,
    Sides,
    Told,
    forget_story,
    read_story,
    story,
    story_text,
    tell,
)

__all__ = [
    "REDACTED",
    "STORY",
    "Curve",
    "Evidence",
    "Field",
    "Frame",
    "Link",
    "Message",
    "Moment",
    "Plot",
    "Redactor",
    "Sides",
    "Told",
    "failure_text",
    "forget_story",
    "open_evidence",
    "read_story",
    "safe_name",
    "story",
    "story_text",
    "tell",
    "writing_evidence",
]
