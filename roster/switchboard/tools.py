"""The switchboard's part of the ecosystem: `ingest`, registration, routing."""

from butlers.butler import Butler
from butlers.switchboard import install


def register(butler: Butler) -> None:
    """Make this butler the switchboard."""
    install(butler)
