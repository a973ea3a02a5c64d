"""Which images are servers of each kind, for who starts them as part of something larger."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from harness_core.infrastructure.containers import ImageChoice
from harness_core.infrastructure.services._nats import NATS_IMAGES
from harness_core.infrastructure.services._postgres import POSTGRES_IMAGES
from harness_core.infrastructure.services._s3 import S3_IMAGES
from harness_core.infrastructure.services._temporal import TEMPORAL_IMAGES
from harness_core.infrastructure.services._valkey import VALKEY_IMAGES

#: Kind → images. Those of PostgreSQL make role and database as the public image does, which one
#: with its data directory baked in does not.
SERVER_IMAGES: Final[Mapping[str, ImageChoice]] = {
    "postgres": dataclasses.replace(POSTGRES_IMAGES, prepared=("postgres",)),
    "s3": S3_IMAGES,
    "temporal": TEMPORAL_IMAGES,
    "valkey": VALKEY_IMAGES,
    "nats": NATS_IMAGES,
}
