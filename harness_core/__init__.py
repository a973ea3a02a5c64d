"""The staging harness as a library: boot systems of several processes for real, and judge them.

It knows no suite and no system under test. Nine rooms, each resting on those before it alone:

- ``base``: outcomes, bounds, waiting, evidence, loops, this machine.
- ``process``: the life of daemons: run, child, warden, stop ladder, sweep.
- ``ports``: leases, owners, readiness.
- ``infrastructure``: containers, PostgreSQL, S3, Temporal, Valkey, NATS, databases.
- ``doubles``: stand-ins of the world outside: HTTP, mail, spans, the model.
- ``system``: subject files, parts, compose files, staging.
- ``assertions``: scenarios as data, loose matchers, trials.
- ``assurance``: requirements, lint, planted faults, mutants, gates.
- ``front``: the pytest plugin, the command line, the scaffold.
"""

import sys

from harness_core._elsewhere import REFUSAL

if REFUSAL:
    sys.exit(REFUSAL)
