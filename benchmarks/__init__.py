"""Benchmarks: how long the harness takes for what it does often, beside what others take.

``python -m benchmarks postgres`` measures everything of one subject in one run, interleaved
(round by round, each contender once), and prints medians. Numbers of different runs or machines
are not compared. Nothing here is an assertion: a test that depends on time would lie under load.

- ``__main__.py``: the command line.
- ``_table.py``: samples, medians, the printed table.
- ``_postgres.py``: PostgreSQL ready, and a database per test.
- ``_containers.py``: PostgreSQL in a container, beside testcontainers' own.
- ``_imports.py``: what an import costs.
- ``_strangers.py``: the suite of a stranger, whole; ``_left.py``: what is left of one that was killed;
  ``_shop_images.py``: images for those that need them; ``strangers/``: the suite, and each one's glue.
- ``_peers.py``: the contenders from elsewhere, run as a user that PostgreSQL accepts.
"""

from benchmarks._containers import bench_containers
from benchmarks._imports import bench_imports
from benchmarks._postgres import bench_postgres
from benchmarks._strangers import bench_strangers
from benchmarks._table import Table

__all__ = ["Table", "bench_containers", "bench_imports", "bench_postgres", "bench_strangers"]
