"""Where an S3 server is, and who we are there, in one URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlsplit

from harness_core.base.errors import BadInput

_EXPECTED = "http://ACCESS_KEY:SECRET_KEY@HOST:PORT, with ?region=REGION where it matters"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Url:
    """A server whose buckets are reached by path (``/bucket/key``).

    Args:
        host: name or address, without brackets.
        port: TCP port.
        access_key: our name there.
        secret_key: never part of ``repr``.
        region: servers of one's own take any.
        secure: it speaks TLS.
    """

    host: str
    port: int
    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"
    secure: bool = False

    @property
    def address(self) -> str:
        """``host:port``, an IPv6 host in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """What a client library calls the endpoint URL; without credentials."""
        return f"{'https' if self.secure else 'http'}://{self.address}"

    @property
    def with_keys(self) -> str:
        """The whole of it, as :func:`parse_s3_url` takes it: never print it unredacted."""
        scheme, _, rest = self.endpoint.partition("://")
        keys = f"{quote(self.access_key, safe='')}:{quote(self.secret_key, safe='')}"
        return f"{scheme}://{keys}@{rest}?region={quote(self.region, safe='')}"


def parse_s3_url(text: str, *, where: str) -> S3Url:
    """Take a URL apart.

    Args:
        text: ``http://ACCESS_KEY:SECRET_KEY@HOST:PORT``; the keys as a URL spells them.
        where: who gave it, for the error.

    Raises:
        BadInput: it is none. The secret is not shown.
    """
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise BadInput(where, key="url", found="no URL", expected=_EXPECTED) from error
    shown = f"{parts.scheme}://…@{parts.hostname}" if parts.username else f"{parts.scheme}://…"
    if not (port and parts.hostname and parts.username and parts.password):
        raise BadInput(where, key="url", found=shown, expected=_EXPECTED)
    return S3Url(
        host=parts.hostname,
        port=port,
        access_key=unquote(parts.username),
        secret_key=unquote(parts.password),
        region=parse_qs(parts.query).get("region", ["us-east-1"])[0],
        secure=parts.scheme == "https",
    )
