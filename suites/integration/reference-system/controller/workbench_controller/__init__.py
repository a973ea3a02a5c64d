"""The controller: episodes over HTTP, their workflows at Temporal, what they tell and leave.

- ``app.py``, ``episodes_api.py``, ``__main__.py``: the HTTP side; ``parts.py``: what it is made of.
  ``submission.py``: starting. ``interruption.py``: ending early. ``records.py``: rows as answers.
- ``run_worker.py``: the process that runs workflows. ``workflow.py``: an episode as a workflow.
  ``activities.py``, ``asset_activities.py``: what it does outside of Temporal. ``run.py``: what it
  is started with. ``temporal.py``: the connection.
- ``lifecycle.py``: the steps of an episode. ``watch.py``: that none is stuck.
- ``eventstore.py``, ``ingest.py``: events kept once and in order. ``storage.py``: the object store.
- ``roles.py``, ``tools.py``, ``model_client.py``: agents. ``worker_client.py``: the worker.
- ``settings.py``, ``database.py``, ``migrate.py``, ``migrations/``: settings and database.
"""
