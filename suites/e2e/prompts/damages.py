"""Ways to damage what the model is asked, and whether a reader would notice."""

from __future__ import annotations

import dataclasses
from typing import Final

__all__ = ["DAMAGES", "Damage"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One way.

    Attributes:
        fault: the reference system's switch for it (``butlers/faults.py``).
        what: what becomes of the prompt.
        unseen: why no row can notice it; empty when at least one must.
    """

    fault: str
    what: str
    unseen: str = ""


DAMAGES: Final = (
    Damage(fault="prompt-lists-nobody", what="the registry is empty"),
    Damage(fault="prompt-lacks-health", what="one butler is missing in the registry"),
    Damage(fault="prompt-describes-nobody", what="descriptions and capabilities are gone"),
    Damage(fault="prompt-key-unnamed", what="a key of the answer is not defined"),
    Damage(fault="prompt-contradicts-itself", what="the format of the answer is contradicted"),
    Damage(fault="prompt-favours-general", what="one butler is to be chosen in any case"),
    Damage(fault="prompt-message-cut", what="the message is cut"),
    Damage(fault="prompt-message-tidied", what="rare letters of the message are gone"),
    Damage(fault="prompt-unquoted", what="the message stands there without marks"),
    Damage(fault="prompt-quotation-open", what="the message may end its own quotation"),
    Damage(fault="prompt-unwarned", what="the sentence that a message is data is gone"),
    Damage(fault="session-tools-missing", what="most tools are not offered"),
    Damage(fault="session-other-tools", what="another butler's tools are offered instead"),
    Damage(fault="session-other-server", what="another butler's tools are offered as well"),
    Damage(fault="session-core-tools", what="tools are offered that no session may use"),
    Damage(fault="prompt-embellished", what="words are added to the part a butler is given",
        unseen="a reader understands it all the same; golden runs pin the words",
    ),
    Damage(fault="session-tools-untyped", what="the schemas of the tools are widened",
        unseen="a reader finds its arguments as well; the butler's own checks still hold",
    ),
    Damage(fault="context-dropped", what="what came before is dropped",
        unseen="messages bring no history here; a trigger's context does, and "
        "contracts/test_session_truth.py holds the session's row against it",
    ),
)  # fmt: skip
