"""Disposable servers: one protocol, several providers, one conformance check.

PostgreSQL, S3, Temporal, Valkey and NATS, each *local* (a server of our own as a supervised child), *container*
(an image, by testcontainers) or *external* (others look after it).

- ``_service.py``: what every service can do (start, stop, kill, pause, resume), its address and place.
- ``_handle.py``: what the handles of all services do alike.
- ``_recipe.py``: what the providers have to know of a kind of server.
- ``_providers.py``: who provides a server, the same way for every kind; an external one.
- ``_as_child.py``, ``_in_container.py``: one of our own, as a process and in a container.
- ``_readiness.py``: when it serves, and a connection to it.
- ``_s3.py``: S3; ``_s3_client.py``, ``_s3_url.py``: boto3's client of a server, and an address;
  ``_s3_objects.py``: what lies in a bucket; ``_s3_sweep.py``: what a dead run left elsewhere.
- ``_temporal.py``: Temporal; ``_temporal_cli.py``: one question by its command line.
- ``_valkey.py``: Valkey; ``_valkey_client.py``: one command. ``_nats.py``: NATS; ``_nats_client.py``: a
  connection.
- ``_postgres.py``: PostgreSQL; ``_postgres_local.py``: as a process of this machine.
- ``_postgres_settings.py``: what our PostgreSQL servers are set to.
- ``_postgres_protocol.py``: enough of its protocol to know that a server answers.
- ``_postgres_url.py``: a PostgreSQL URL in parts.
- ``_images.py``: which images are such servers.
- ``_cluster.py``: the cached initialised data directory, and its copies.
- ``_shared_memory.py``: what a killed one leaves in the kernel.

Every provider of every service passes ``check_service`` of ``harness_core/tests/conformance``.
"""

from harness_core.base.machine import (
    PostgresBinaries,
    find_postgres_binaries,
    server_account,
    usable_binaries,
)
from harness_core.infrastructure.services._images import SERVER_IMAGES
from harness_core.infrastructure.services._nats import NATS_ADDRESS_VARIABLE, NatsService, open_nats
from harness_core.infrastructure.services._nats_client import (
    NatsMessage,
    NatsRefusedError,
    open_nats_connection,
)
from harness_core.infrastructure.services._postgres import (
    PostgresService,
    open_postgres,
    postgres_answers,
)
from harness_core.infrastructure.services._postgres_url import parse_postgres_url, redacted_url
from harness_core.infrastructure.services._providers import external_address
from harness_core.infrastructure.services._s3 import S3_URL_VARIABLE, S3Service, open_s3
from harness_core.infrastructure.services._s3_client import S3RefusedError, make_bucket, s3_client
from harness_core.infrastructure.services._s3_objects import (
    S3Object,
    S3Summary,
    fetch_object,
    list_objects,
    put_object,
    remove_bucket,
    remove_object,
)
from harness_core.infrastructure.services._s3_sweep import name_bucket, sweep_bucket
from harness_core.infrastructure.services._s3_url import S3Url, parse_s3_url
from harness_core.infrastructure.services._service import Place, Service
from harness_core.infrastructure.services._temporal import (
    TEMPORAL_ADDRESS_VARIABLE,
    TemporalService,
    open_temporal,
)
from harness_core.infrastructure.services._valkey import (
    VALKEY_URL_VARIABLE,
    ValkeyService,
    open_valkey,
)
from harness_core.infrastructure.services._valkey_client import Reply, ValkeyRefusedError

__all__ = [
    "NATS_ADDRESS_VARIABLE",
    "S3_URL_VARIABLE",
    "SERVER_IMAGES",
    "TEMPORAL_ADDRESS_VARIABLE",
    "VALKEY_URL_VARIABLE",
    "NatsMessage",
    "NatsRefusedError",
    "NatsService",
    "Place",
    "PostgresBinaries",
    "PostgresService",
    "Reply",
    "S3Object",
    "S3RefusedError",
    "S3Service",
    "S3Summary",
    "S3Url",
    "Service",
    "TemporalService",
    "ValkeyRefusedError",
    "ValkeyService",
    "external_address",
    "fetch_object",
    "find_postgres_binaries",
    "list_objects",
    "make_bucket",
    "name_bucket",
    "open_nats",
    "open_nats_connection",
    "open_postgres",
    "open_s3",
    "open_temporal",
    "open_valkey",
    "parse_postgres_url",
    "parse_s3_url",
    "postgres_answers",
    "put_object",
    "redacted_url",
    "remove_bucket",
    "remove_object",
    "s3_client",
    "server_account",
    "sweep_bucket",
    "usable_binaries",
]
