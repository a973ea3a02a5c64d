"""What keeps a suite honest: requirements, planted faults, gates, leaks, checks of readers.

- ``requirements``: ledgers, their results, and the lint of black-box tests.
- ``planted``: faults that must turn named tests red. ``shards``: a part of the tests, by duration.
- ``junit``: the report of a session, read back.
- ``gates``: what can run on this machine. ``leaks``: what outlived a run.
- ``conformance``: every mistake that a configuration file can have, for its reader.
"""
