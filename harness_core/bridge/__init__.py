"""Where trio meets the rest: threads and blocking libraries. Nothing else in the core uses them.

- ``_loop.py``: a trio loop in a thread, for session-scoped pytest fixtures and the CLI.
- ``_threads.py``: run a blocking call off the loop; a lock between loops.
- ``_protocol.py``: a child process that is nothing but an asyncio protocol.
"""

from harness_core.bridge._loop import Loop, open_loop
from harness_core.bridge._protocol import serve_protocol
from harness_core.bridge._threads import Mutex, blocking, reading

__all__ = ["Loop", "Mutex", "blocking", "open_loop", "reading", "serve_protocol"]
