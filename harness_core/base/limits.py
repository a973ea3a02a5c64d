"""Every bound of the harness in one place, with the reason for its value.

Durations are deadlines, not sleeps: reaching one is a failure. They are generous (a loaded
2-core CI machine must not trip them) because nothing waits for a deadline when all is well.
"""

from __future__ import annotations

from typing import Final

#: First interval between two probes of an observable. A local server that starts in 80 ms is then
#: seen within 2 % of its time; the interval grows in ``wait.until``, so idle cost stays low.
POLL_S: Final = 0.002

#: Lines of output kept in memory per child and shown in errors.
TAIL_LINES: Final = 32

#: Longest line of child output kept whole; the rest of it is counted and dropped from the tail,
#: never from the log file.
LINE_BYTES: Final = 16_384

#: Process spawned and exec succeeded. Slowest seen on a loaded 2-core machine: 0.4 s.
CHILD_START_S: Final = 30.0

#: After SIGTERM. Butlers drain running sessions for up to 30 s by contract; callers that stop such
#: a child pass a larger grace.
CHILD_STOP_GRACE_S: Final = 10.0

#: What a killed process had started may notice and end by itself; what is left then outlived it.
CHILD_OUTLIVED_S: Final = 2.0

#: After SIGKILL, before the child is reported as unkillable (state D, or another host's ptrace).
CHILD_STOP_KILL_S: Final = 5.0

#: After the last child was stopped, until a process that is still there counts as leaked. A
#: grandchild that ends with its parent needs a few milliseconds.
LEAK_GRACE_S: Final = 1.0

#: One call to a container engine while something is started. Slowest create or start seen, 20 at
#: once on 2 cores: 6 s.
CONTAINER_START_S: Final = 60.0

#: Attempts at creating and starting one container; a name conflict, a port lost to another process
#: and an engine that is too slow under load are known to pass.
CONTAINER_STARTS: Final = 3

#: One container stopped and removed with its volumes; then it is reported and left to the sweep.
CONTAINER_REMOVE_S: Final = 30.0

#: A container's log in evidence; a server that writes more repeats itself.
CONTAINER_LOG_BYTES: Final = 16 * 1024 * 1024

#: The last lines of a container that has ended, on their way from the engine. Milliseconds; more than
#: 5 s seen for 200 kB on two cores with a load of 25.
CONTAINER_LOG_END_S: Final = 20.0

#: PostgreSQL answering its first query; 79 ms on tmpfs, seconds when initdb runs first.
POSTGRES_READY_S: Final = 60.0

#: One request to an S3 server: to connect, and between two pieces of its answer. A request whose
#: caller is gone lives no longer.
S3_CALL_S: Final = 30.0

#: An S3 server answering its first signed request; 0.2-0.3 s seen.
S3_READY_S: Final = 30.0

#: Temporal's development server describing a namespace; 0.4 s seen, seconds on a loaded machine.
TEMPORAL_READY_S: Final = 60.0

#: Valkey answering a PING, with its file of changes read.
VALKEY_READY_S: Final = 30.0

#: NATS answering a PING, with its streams recovered.
NATS_READY_S: Final = 30.0

#: One MCP tool call that does not run a session.
MCP_CALL_S: Final = 30.0

#: One model call through the gateway, first byte to last.
LLM_CALL_S: Final = 120.0

#: One scenario: classification session + target session(s); 3 s offline, tens of seconds live.
SCENARIO_S: Final = 90.0

#: A row that another process is about to write.
ROW_WAIT_S: Final = 15.0

#: Rows shown when an assertion on rows fails.
ROWS_SHOWN: Final = 5

#: Largest HTTP body the gateway reads (a Claude Code request with tools is about 100 kB).
HTTP_BODY_BYTES: Final = 32 * 1024 * 1024

#: What the models of a suite may cost in a run, in USD, where its suite.toml names no budget_usd. A
#: gateway of a few live tests: one call of Claude Code reserves about 0.02.
LLM_BUDGET_USD: Final = 0.20

#: One service of a stack, for each stage of its start; a service of eight Python processes that boot
#: together on 2 cores needs 6 s, ten times that on a loaded machine.
STACK_READY_S: Final = 60.0

#: A service of a stack after SIGTERM: compose's own default.
STACK_STOP_S: Final = 10.0

#: A shorter run waits so long, counted from its beginning, for the sweep beside it of what dead runs
#: left in an engine: a container is removed in some 0.3 s. A longer one does not wait.
SWEEP_BESIDE_S: Final = 2.0

#: Sweep: SIGKILL until gone.
SWEEP_KILL_S: Final = 10.0
