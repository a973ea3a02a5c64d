"""Where trio meets the rest: asyncio, threads and blocking libraries. Nothing else in the core uses them.

- ``_loop.py``: :class:`Loop`, a trio loop that resources live on and callers anywhere can use;
  :func:`open_loop` starts one in a thread, for synchronous code (session-scoped pytest fixtures, the
  CLI); :func:`this_loop` is the one that runs already.
- ``_anywhere.py``: :func:`at_home` and :func:`anywhere`, for methods that any loop may await.
- ``_in_sync.py``: :func:`in_sync`, the same methods for code without a loop.
- ``_callers.py``: who calls and how each waits; ``_call.py``: one call on its way.
- ``_threads.py``: run a blocking call off the loop, which may wait for it; a lock between loops; a thread for what is synchronous.
- ``_protocol.py``: a child process that is nothing but an asyncio protocol.
"""

from harness_core.base.bridge._anywhere import anywhere, at_home
from harness_core.base.bridge._in_sync import SyncMethod, View, in_sync
from harness_core.base.bridge._loop import Loop, open_loop, this_loop
from harness_core.base.bridge._protocol import serve_protocol
from harness_core.base.bridge._threads import (
    Condition,
    Mutex,
    beside,
    blocking,
    check_cancelled,
    from_thread,
    interruptible,
    reading,
)

__all__ = [
    "Condition",
    "Loop",
    "Mutex",
    "SyncMethod",
    "View",
    "anywhere",
    "at_home",
    "beside",
    "blocking",
    "check_cancelled",
    "from_thread",
    "in_sync",
    "interruptible",
    "open_loop",
    "reading",
    "serve_protocol",
    "this_loop",
]
