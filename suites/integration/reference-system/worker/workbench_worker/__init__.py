"""The worker: sessions' files, their own code behind walls, geometry and physics.

- ``app.py``: the routes put together. ``settings.py``: its settings. ``__main__.py``: the process.
- ``sessions.py``: a session and its folders. ``beneath.py``: paths that cannot leave it.
  ``eventlog.py``: its ``events.jsonl``. ``toolcalls.py``: what is recorded of every operation.
- ``walls.py``: what a session's code sees of the machine. ``confined.py``: a command behind walls.
  ``execution.py``: such commands, run and limited. ``jobs.py``: what can be cancelled.
- ``zygote.py``: the warm process that geometry and physics are forked from; ``pool.py``: asking it.
  ``geometry.py``, ``physics.py``: what runs there. ``simulations.py``: one at a time, in order.
- ``files_api.py``, ``runtime_api.py``, ``benchmark_api.py``: the endpoints. ``asked.py``: what they
  are given. ``refusal.py``: what is not carried out.
"""
