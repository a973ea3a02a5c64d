"""A PostgreSQL URL in parts: what changes between databases of one server, and what does not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from harness_core.base.errors import BadInput

_EXPECTED = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresUrl:
    """Where a server is and who we are there.

    Args:
        host: name or address, without brackets.
        port: TCP port.
        user: role name.
        password: its password; never part of ``repr``.
        query: what follows ``?``, e.g. ``sslmode=require``.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    query: str = ""

    @property
    def address(self) -> str:
        """``host:port``, an IPv6 host in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def database(self, name: str) -> str:
        """The whole URL of one database."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        query = f"?{self.query}" if self.query else ""
        user = quote(self.user, safe="")
        return f"postgresql://{user}{secret}@{self.address}/{quote(name, safe='')}{query}"


def parse_postgres_url(text: str, *, where: str) -> PostgresUrl:
    """Take a URL apart; the database in it is left out.

    Args:
        text: ``postgresql://…``; a ``+driver`` after the scheme is accepted and dropped.
        where: who gave it, for the error.

    Raises:
        BadInput: it is no PostgreSQL URL with a host. The password is not shown.
    """
    try:
        parts = urlsplit(text)
        port = parts.port or 5432
    except ValueError as error:
        raise BadInput(where, key="url", found=redacted_url(text), expected=_EXPECTED) from error
    if parts.scheme.partition("+")[0] not in {"postgresql", "postgres"} or not parts.hostname:
        raise BadInput(where, key="url", found=redacted_url(text), expected=_EXPECTED)
    return PostgresUrl(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username or "postgres"),
        password=unquote(parts.password or ""),
        query=parts.query,
    )


def redacted_url(url: str) -> str:
    """``url`` with its password replaced, fit for messages."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)
