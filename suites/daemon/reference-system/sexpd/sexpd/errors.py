"""What can go wrong before or outside a conversation, and how it is reported.

Each text reads "cannot VERB OBJECT: OBSERVED. NEXT STEP", on one line.
"""

from __future__ import annotations


class SexpdError(Exception):
    """Something an operator must act on; printed as one line.

    Attributes:
        exit_code: what the command ends with.
    """

    exit_code = 1


class ConfigError(SexpdError):
    """A configuration that means nothing.

    Args:
        key: the variable, or the option of the command line.
        found: what stands there.
        expected: what should.
    """

    exit_code = 2

    def __init__(self, *, key: str, found: object, expected: str) -> None:
        super().__init__(f"cannot read the configuration: {key} is {found!r}. Expected {expected}.")
