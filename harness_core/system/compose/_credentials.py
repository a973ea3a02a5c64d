"""Who a stack is on its database server, as the image of PostgreSQL reads it from the environment."""

from __future__ import annotations

from urllib.parse import quote

from harness_core.system.compose._compose import ComposeService

__all__ = ["credentials", "database_url"]


def credentials(service: ComposeService) -> tuple[str, str, str]:
    """User, password and database."""
    given = service.environment
    user = given.get("POSTGRES_USER", "postgres")
    return user, given.get("POSTGRES_PASSWORD", ""), given.get("POSTGRES_DB", user)


def database_url(address: str, service: ComposeService) -> str:
    """The URL of the stack's own database, password included."""
    user, password, database = credentials(service)
    return f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@{address}/{database}"
