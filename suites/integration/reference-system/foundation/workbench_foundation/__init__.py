"""What every service of the stack stands on.

- ``faults.py``: the planted faults. ``errors.py``: what stops a service. ``settings.py``: reading
  the environment. ``log.py``: JSON lines that know whose work they tell of.
- ``keys.py``: the API key, before anything else. ``requests.py``: one log line per request.
- ``openapi.py``: what all operations answer. ``health.py``: dependencies asked side by side. ``serving.py``: an app on a host and port.
"""
