"""What everything rests on: outcomes, bounds, waiting, evidence, the bridge between loops, this machine.

- ``errors``: the three outcomes, and errors that say what was found. ``limits``: bounds against hanging.
- ``reading``, ``texts``: what people write, as typed values. ``screen``: what commands show.
- ``wait``, ``slowness``, ``vain``, ``groups``: waiting on observables, how long on a busy machine, and for
  what never comes; exception groups at the edge of an opener. ``sockets``: names short enough for the kernel.
- ``evidence``: what a test leaves, secrets redacted. ``bridge``: trio beside asyncio and threads.
- ``machine``: programs, extras, space and namespaces of this machine. ``unclosed``: what is left to
  the garbage collector.
"""
