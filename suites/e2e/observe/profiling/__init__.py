"""Where running processes spend their time, seen from outside: attach, watch, leave.

- ``_profiles.py``: :func:`open_profiles`, py-spy attached to pids for the length of a block; a flame
  graph and a speedscope file per process among the evidence. ``suites.e2e.observe.profiling._profiler`` says
  whether that is possible here.
- ``_frames.py``: :func:`read_frames`, the functions a profile names.
"""

from suites.e2e.observe.profiling._frames import Frame, read_frames
from suites.e2e.observe.profiling._profiler import cannot_profile
from suites.e2e.observe.profiling._profiles import Profiles, open_profiles

__all__ = ["Frame", "Profiles", "cannot_profile", "open_profiles", "read_frames"]
