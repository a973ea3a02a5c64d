"""Stand-ins of the world outside: HTTP, mail, a collector of spans, and the model.

- ``http``: a client that says how silence was silent; a server that records and answers by rules.
- ``serving``: the server under the gateway and under the harness's own pages.
- ``mail``: a mail server that keeps what it is given. ``telemetry``: a collector of spans.
- ``model``: the model gateway; ``turns``: what a model does, as a suite writes it down.
"""
