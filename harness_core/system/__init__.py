"""A system under test: its file, its parts, its compose file, and how a person holds it.

- ``subject``: a subject file. ``suites``: suite.toml. ``options``: what is asked of an environment.
- ``parts``: processes, servers and doubles, started together, taken away and given back.
- ``compose``: a compose file as such a system. ``staging``: ``harness up``, ``ps``, ``logs``, ``down``.
"""
