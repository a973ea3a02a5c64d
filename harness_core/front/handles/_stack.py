"""A stack as the fixture gives it: that of the core, for code without a loop too."""

from __future__ import annotations

from harness_core.base.bridge import View, in_sync
from harness_core.front.handles._outage import How, Outage
from harness_core.system import compose as core
from harness_core.system.parts import Parts


class SyncStack(View["Stack"]):
    """The methods of :class:`Stack` for code without a loop."""

    start = in_sync(Parts.start)
    stop = in_sync(Parts.stop)
    kill = in_sync(Parts.kill)
    pause = in_sync(Parts.pause)
    resume = in_sync(Parts.resume)
    restart = in_sync(Parts.restart)
    processes = in_sync(Parts.processes)
    states = in_sync(Parts.states)
    unhealthy = in_sync(Parts.unhealthy)
    healthy = in_sync(Parts.healthy)
    mend = in_sync(Parts.mend)
    rows = in_sync(core.Stack.rows)
    objects = in_sync(core.Stack.objects)
    object = in_sync(core.Stack.object)
    remove_object = in_sync(core.Stack.remove_object)

    def outage(self, name: str, how: How = "stop") -> Outage:
        """A service is away for a ``with``, and serves again afterwards."""
        return Outage(self._handle, name, how)


class Stack(core.Stack):
    """The running services of a compose file; given by the fixture ``stack``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code.
    """

    @property
    def sync(self) -> SyncStack:
        """The same methods, which wait for their answer."""
        return SyncStack(self, self.loop)
