"""Containers of a run: which engine, which images, start to removal, and nothing left behind.

- ``_client.py``: a client of the engine; its errors as ours.
- ``_container.py``: :func:`open_container`, one container of a run; :func:`adopt_container`, one that
  compose has created.
- ``_child.py``: a subject's process in a container, with the handle of a process.
- ``_logs.py``: its output, into evidence while it runs.
- ``_project.py``: the networks and volumes that containers of a compose project share.
- ``_labels.py``: whose a container is.
- ``_sweep.py``: what dead runs left in an engine.
- ``_provide.py``: :func:`provide_image`, which image a service runs.
- ``_recipes.py``: the images that the harness builds, and the tag that their inputs give them.
- ``_build.py``: builds, lists and removes them.
- ``_report.py``: what ``harness doctor`` shows of them.
- ``_bootstrap.py``: a Debian root without a registry.
- ``images/``: a Dockerfile for each; they build from public bases too.

Which engine answers is found by ``harness_core.infrastructure.engine``, for which gates need no library. This is
the only package that imports ``docker`` and ``testcontainers``.
"""

from harness_core.infrastructure.containers._build import (
    build_images,
    build_subject_image,
    image_rows,
    remove_images,
)
from harness_core.infrastructure.containers._child import (
    ContainerChild,
    ContainerCommand,
    open_container_child,
)
from harness_core.infrastructure.containers._client import engine_client
from harness_core.infrastructure.containers._container import (
    Container,
    ContainerSpec,
    adopt_container,
    open_container,
)
from harness_core.infrastructure.containers._labels import LABEL_RUN, host_id, run_labels
from harness_core.infrastructure.containers._project import (
    announce_container,
    open_network,
    open_volume,
)
from harness_core.infrastructure.containers._provide import ImageChoice, provide_image
from harness_core.infrastructure.containers._recipes import IMAGE_NAMES, image_tag
from harness_core.infrastructure.containers._report import engine_report
from harness_core.infrastructure.containers._sweep import (
    sweep_container,
    sweep_network,
    sweep_volume,
)

__all__ = [
    "IMAGE_NAMES",
    "LABEL_RUN",
    "Container",
    "ContainerChild",
    "ContainerCommand",
    "ContainerSpec",
    "ImageChoice",
    "adopt_container",
    "announce_container",
    "build_images",
    "build_subject_image",
    "engine_client",
    "engine_report",
    "host_id",
    "image_rows",
    "image_tag",
    "open_container",
    "open_container_child",
    "open_network",
    "open_volume",
    "provide_image",
    "remove_images",
    "run_labels",
    "sweep_container",
    "sweep_network",
    "sweep_volume",
]
