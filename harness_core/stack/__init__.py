"""A compose file becomes a running stack, by one of several drivers with the same handle.

- ``_open.py``: :func:`open_stack`.
- ``_handle.py``: :class:`Stack`: addresses, logs, rows, objects, and services taken away.
- ``_description.py``: how a stack is reached, as data.
- ``_compose.py``: the compose file; ``_recipe.py``: its ``x-harness`` blocks; ``_order.py``: who
  waits for whom; ``_variables.py``: ``${NAME}``; ``_yaml.py``: YAML, strictly.
- ``_keys.py``: the keys that servers of ours demand, looked at before anything starts.
- ``_external.py``, ``_credentials.py``: servers of somebody else, and who the stack is on them.
- ``_local.py``: the driver without containers; ``_rewrite.py``: ``name:port`` without a network.
- ``_docker.py``: the driver with containers; ``_project_file.py``: what compose is told,
  ``_container_part.py``: one container, ``_relay.py``: from containers to what runs here.
- ``_here.py``: the model gateway and recorders; ``_probe.py``: one look at health;
  ``_options.py``: what a stack is given besides its file.
- ``_part.py``: one service, for a driver; ``_process_part.py``, ``_server_part.py``,
  ``_recorder_part.py``: a child, a server of the harness, a stand-in for a third party.
- ``_boot.py``: all of them side by side; ``_failed.py``: who is to blame when one stays down.
- ``_control.py``: services taken away and given back, by name.
- ``_held.py``, ``_attached.py``: a stack held by one process and used by several.

Both drivers pass ``harness_core.testing.check_stack``. The only package that imports PyYAML.
"""

from harness_core.machine import need_extra

need_extra("stack", action="use harness_core.stack")

from harness_core.stack._attached import attach_stack
from harness_core.stack._compose import Compose, ComposeService, Condition, read_compose
from harness_core.stack._description import Description, ServiceSeen
from harness_core.stack._failed import ServiceFailed
from harness_core.stack._handle import OUTAGES, Stack
from harness_core.stack._held import HeldStack, hold_stack
from harness_core.stack._open import DRIVERS, open_stack
from harness_core.stack._options import StackOptions
from harness_core.stack._part import State

__all__ = [
    "DRIVERS",
    "OUTAGES",
    "Compose",
    "ComposeService",
    "Condition",
    "Description",
    "HeldStack",
    "ServiceFailed",
    "ServiceSeen",
    "Stack",
    "StackOptions",
    "State",
    "attach_stack",
    "hold_stack",
    "open_stack",
    "read_compose",
]
