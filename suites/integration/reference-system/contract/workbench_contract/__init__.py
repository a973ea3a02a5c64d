"""What controller and worker say and take, as pydantic models and enums; nothing here does anything.

- ``places.py``: where things lie in a session.
- ``problem.py``: every refusal. ``health.py``: every ``/health``.
- ``episodes.py``: the controller's requests and answers.
- ``events.py``: one event, wherever it lies.
- ``findings.py``: what a gate found. ``artifact.py``: strict models and quantities of files that agents
  write; ``objectives.py``, ``estimate.py``, ``review.py``: those files.
- ``flows.py``: planner, coder and reviewer one after another, and what was decided.
- ``handover.py``: what a role hands over; ``todo.py``: the entries of its list;
  ``pricing.py``: what it costs;
  ``design.py``: the verdict about what was built.
- ``connections.py``: how parts hold together.
- ``catalogue.py``: searches of parts that can be bought.
- ``renders.py``: pictures of designs and videos of runs.
- ``files.py``, ``execution.py``, ``benchmark.py``: the worker's requests and answers.
"""
