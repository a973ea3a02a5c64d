"""What a dead run left on an S3 server that is not ours: its bucket, and only that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import trio

from harness_core.base.errors import Unavailable
from harness_core.infrastructure.services._s3 import S3_URL_VARIABLE
from harness_core.infrastructure.services._s3_client import list_buckets
from harness_core.infrastructure.services._s3_objects import remove_bucket
from harness_core.infrastructure.services._s3_url import parse_s3_url

#: Of a name: what every S3 server takes.
_LONGEST = 63


def name_bucket(name: str, *, run_id: str) -> str:
    """What a bucket of a run is called on a server that others use too."""
    return f"{_prefix(run_id)}{name}"[:_LONGEST].rstrip("-")


def sweep_bucket(entry: Mapping[str, Any]) -> str:
    """Remove the bucket of one dead run; a :data:`harness_core.process.Sweeper`.

    Args:
        entry: a ledger entry of kind ``bucket``: ``server`` (``host:port``), ``run`` (its id) and
            ``bucket`` (its name).

    Returns:
        What was removed, as text; empty when nothing was left, or the name is not of that run.

    Raises:
        Unavailable: ``HARNESS_S3_URL`` does not name that server, or it does not answer.
        S3RefusedError: it refuses.
    """
    server, run_id = str(entry.get("server")), str(entry.get("run"))
    bucket = str(entry.get("bucket"))
    action = f"remove bucket {bucket} of dead run {run_id} on {server}"
    given = os.environ.get(S3_URL_VARIABLE, "")
    url = parse_s3_url(given, where=S3_URL_VARIABLE) if given else None
    if url is None or url.address != server:
        raise Unavailable(
            action,
            observed=f"{S3_URL_VARIABLE} names {url.address if url else 'no server'}",
            next_step=f"Set {S3_URL_VARIABLE} to that server and sweep again, "
            f"or harness sweep --forget {run_id} if it is no more",
        )

    async def remove() -> bool:
        if not bucket.startswith(_prefix(run_id)) or bucket not in await list_buckets(url):
            return False
        await remove_bucket(url, bucket)
        return True

    try:
        removed = trio.run(remove)
    except OSError as error:
        raise Unavailable(
            action, observed=f"it does not answer: {error}", next_step="Sweep again when it does"
        ) from error
    return f"bucket {bucket} on {server}" if removed else ""


def _prefix(run_id: str) -> str:
    return f"hs-{run_id}-"
