"""The staging harness as a library: boot systems of several processes for real, and judge them.

It knows no suite and no system under test. Bottom up, each layer knowing only those before it:

- ``errors``, ``limits``, ``reading``, ``texts``, ``screen``, ``groups``, ``wait``: outcomes, bounds, what
  people write as typed values, texts inside values, what commands show, waiting on observables.
- ``evidence``, ``bridge``, ``gates``, ``subject``: what a test leaves, threads, what can run here,
  how a system under test is started.
- ``process``, ``http``, ``net``: supervised children, servers that record, ports that are provably
  theirs, readiness.
- ``services``, ``db``, ``llm``, ``telemetry``: disposable servers, databases and rows, the model
  gateway, a collector of spans.
- ``scenario``, ``testing``: scenarios as data, conformance checks and fakes.
- ``suites``, ``ledger``, ``faults``, ``scaffold``: suite files, lint, planted faults, new suites.
- ``pytest_plugin``, ``cli``: what pytest and a person see.
"""
