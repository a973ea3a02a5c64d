"""A compose file becomes a running system of parts, by one of several drivers with the same handle.

- ``_open.py``: :func:`open_stack`. ``_handle.py``: :class:`Stack`, with rows and objects.
- ``_compose.py``: the compose file; ``_recipe.py``: its ``x-harness`` blocks; ``_variables.py``:
  ``${NAME}``; ``_yaml.py``: YAML, strictly.
- ``_keys.py``: the keys that servers of ours demand, checked before anything starts.
- ``_external.py``, ``_credentials.py``: servers outside of the run, and the stack's credentials on them.
- ``_local.py``: the driver without containers; ``_rewrite.py``: ``name:port`` without a network.
- ``_docker.py``: the driver with containers; ``_project_file.py``: the file for compose,
  ``_container_part.py``: one container,
  ``_relay.py``: from containers to what runs here. ``_driver.py``: what both drivers share.
- ``_options.py``: what a stack is given besides its file.

Both drivers pass ``check_stack`` of ``harness_core/tests/conformance``. The only package that imports
PyYAML.
"""

from harness_core.base.machine import need_extra

need_extra("stack", action="use harness_core.system.compose")

from harness_core.system.compose._compose import (
    Compose,
    ComposeService,
    read_compose,
    read_services,
)
from harness_core.system.compose._handle import Access, Stack
from harness_core.system.compose._open import open_stack
from harness_core.system.compose._options import StackOptions, usual_environment
from harness_core.system.compose._recipe import Recipe

__all__ = [
    "Access",
    "Compose",
    "ComposeService",
    "Recipe",
    "Stack",
    "StackOptions",
    "open_stack",
    "read_compose",
    "read_services",
    "usual_environment",
]
