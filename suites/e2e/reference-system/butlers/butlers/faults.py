"""Planted faults: the ways this reference is made wrong on purpose, to prove that a test sees it.

`BUTLERS_FAULT` is a comma-separated list of the names below, read once. Without it nothing here
does anything. A site reads ``if faults.on("dispatch-twice"):``.
"""

from __future__ import annotations

import os

from butlers.errors import ConfigError

VARIABLE = "BUTLERS_FAULT"

FAULTS = {
    "abandoned-left-open": "sessions that a killed butler left open stay open when it starts again",
    "accepted-unstored": "ingest accepts a message that it could not store",
    "address-kept": "the switchboard keeps the first address it had of each butler",
    "answer-lost-at-stop": "a caller asks for more behind each answer, and loses the answer with it",
    "appointment-claimed": "the calendar answers that it has made an event, and has not",
    "attempt-unrecorded": "a delivery leaves no row for the attempt at it",
    "bad-credentials-active": "a module whose credentials the service refuses counts as active",
    "busy-port-late": "a butler tries its port last, when it has touched the database already",
    "busy-port-started": "a butler whose port is busy logs that it has started",
    "capabilities-lost": "the registry keeps no capabilities",
    "cascade-ignored": "a module is started although one it depends on has failed",
    "channel-forgotten": "every inbox row says that it came by telegram",
    "channels-collide": "an event id is the same message on every channel",
    "claimed-not-done": "symptom_log answers ok and inserts nothing",
    "classification-without-deadline": "a session that classifies runs as long as it likes",
    "classify-always-general": "every message goes to general, and the inbox row denies a fallback",
    "clock-stopped-by-trouble": "a beat that cannot be written down is the last of the clock's",
    "completed-too-early": "a message is completed first, and its outcomes are written a moment later",
    "context-dropped": "a trigger's context never reaches the session",
    "core-tool-missing": "no butler offers schedule_delete",
    "cost-halved": "session rows record half of what was spent",
    "cost-zero": "session rows record a cost of zero",
    "cron-by-the-wall": "tasks are armed by the clock on the wall, taken for the world's clock",
    "cron-unchecked": "a line that is no cron line is taken, and the task never falls due",
    "cut-session-files-kept": "of a session that was cut off the directory stays",
    "cut-session-free": "a session that was cut off has spent nothing on record",
    "cut-session-last-call": "a session that is cut off has spent what its last call of the model cost",
    "database-unasked": "a butler whose database is gone says that it is well",
    "date-unchecked": "a yearly date is kept that no year has",
    "dead-target-success": "a hop to a target that is not there counts as a success",
    "decomposition-reordered": "the inbox row lists the segments of a message last first",
    "delivered-twice": "the messenger sends every message twice and keeps one receipt",
    "delivered-unconfirmed": "a telegram counts as delivered that the service did not confirm",
    "delivery-forgotten": "what a killed messenger had still to deliver waits for ever",
    "delivery-gives-up": "a delivery that a service in trouble refused is not tried again",
    "delivery-hangs": "a service that takes a message and never answers is waited for without an end",
    "delivery-hop-in-seconds": "hops to the messenger hold seconds where milliseconds belong",
    "delivery-resent": "a restarted messenger sends again what may have gone out already",
    "dispatch-twice": "every segment is dispatched to its target a second time",
    "dispatch-twice-under-load": "while two messages are under way, further ones are dispatched twice",
    "drain-cut-short": "a shutdown gives running sessions three seconds, whatever it should",
    "drain-skipped": "shutdown cancels sessions at once",
    "due-lost-at-restart": "a restarted butler arms its tasks anew, due or not",
    "duplicate-new-id-under-load": "while messages wait, a duplicate is answered with an id of its own",
    "duplicate-redispatched": "a duplicate ingest is processed again",
    "duration-in-seconds": "session rows hold seconds where milliseconds belong",
    "envelope-lenient": "unknown fields of an envelope are passed over",
    "error-overlooked": "every dispatch logs an error and goes on as if nothing were wrong",
    "error-span-missing": "a session or a hop that failed leaves a span like any other",
    "event-id-cut": "of an event id the first 64 letters count",
    "extra-session": "an uninvolved butler is dispatched to as well",
    "failed-session-success": "a session that failed is recorded and answered as a success",
    "failures-held": "each call that fails leaves a file open",
    "fallback-cuts-message": "what falls back reaches general without its end",
    "fallback-silent": "a classification nobody can use goes to general, and the row denies it",
    "fallback-unexplained": "the inbox row of a fallback does not say why",
    "first-page-of-calendar": "of a calendar of several pages the first is shown",
    "folders-passed-over": "butlers up passes over folders whose names begin with a point or a line",
    "forwarded-host-believed": "a header that claims to know better stands in for Host",
    "foreign-misrouted": "with a prompt of another shape, every message goes to general",
    "heartbeat-skips-butler": "no beat ticks relationship",
    "hop-in-seconds": "routing_log holds seconds where milliseconds belong",
    "hop-without-deadline": "a hop waits for its target without end",
    "host-checked-late": "a request for another host is carried out, and its answer withheld",
    "host-checked-on-stream-alone": "Host is looked at when a stream is opened, and nowhere else",
    "host-port-ignored": "of a Host, what stands before its first colon counts",
    "host-prefix-accepted": "a Host that begins like the butler's own is taken for it",
    "host-suffix-accepted": "a Host that ends like the butler's own is taken for it",
    "host-unchecked": "requests for any host are carried out",
    "inbox-forgotten": "a restarted switchboard leaves the waiting messages where they are",
    "inbox-replayed": "messages that were being dispatched at a restart are dispatched again",
    "inbox-stuck": "an inbox row never leaves the state planned",
    "ingest-race": "a delivery looks for an earlier one and stores itself a moment later",
    "instructions-dropped": "sessions are not told what stands in their butler's CLAUDE.md",
    "key-ignored": "the idempotency key of a message is not looked at",
    "key-in-arguments": "the model's key is part of a session's command line",
    "last-dose-by-its-row": "the last dose is the row that is newest, and none counts as one",
    "lease-dies-with-database": "the switchboard stops renewing its own lease when its database is down",
    "lease-ignored": "a butler that is silent stays active",
    "leases-run-while-down": "a switchboard that was down for a lease starts with nobody registered",
    "ledger-misses-call": "classification is guessed locally; its row claims tokens and cost",
    "list-looked-for-first": "a list that is not there is looked for and then made, which two at a time do twice",
    "listens-everywhere": "butlers serve on every address of the machine",
    "lost-under-load": "a message that is taken up while three others wait is forgotten",
    "mail-cut": "a mail ends after sixty letters",
    "message-decides": "a JSON array in a message is taken for its classification",
    "message-lost": "every fourth message is accepted and forgotten",
    "message-of-any-session": "what is sent beside a session is booked on its message",
    "migration-head-stamped": "the second migration of health is stamped without being run",
    "migration-missing-column": "the health chain leaves out symptoms.severity",
    "model-key-cut": "sessions present the model's key without its last letter",
    "modules-stopped-first": "a shutdown stops the modules before it drains the sessions",
    "name-read-otherwise": "a list is kept by its name as it was mended, and looked for by it as it was said",
    "name-taken-twice": "two who want a name for a task at the same moment both have it",
    "newcomer-unlisted": "the classifying model is shown the butlers of the first roster alone",
    "nobody-is-the-owner": "a notification to an empty recipient goes to the owner",
    "notify-swallowed": "notify answers that it has sent, and has not",
    "origin-unchecked": "a page of any origin may call the tools of a butler",
    "overload-swallowed": "what the full queue refuses is answered as done",
    "partial-aborts": "one target that fails takes the message's other targets along",
    "password-in-error": "a database that cannot be reached is named with its password",
    "place-kept": "a hop that failed keeps its place among the hops to its target",
    "prompt-contradicts-itself": "the classifying prompt also forbids JSON",
    "prompt-cut-on-record": "session rows hold the first 200 letters of a prompt",
    "prompt-describes-nobody": "the classifying prompt names butlers and does not say what they do",
    "prompt-embellished": "a butler is asked more than the message said",
    "prompt-favours-general": "the classifying prompt ends by asking for general in any case",
    "prompt-interpolated": "variables in a prompt are filled in from the butler's environment",
    "prompt-key-unnamed": "the classifying prompt does not name the key that its answer must have",
    "prompt-lacks-health": "the classifying prompt does not list health",
    "prompt-lists-nobody": "the classifying prompt lists no butler",
    "prompt-message-cut": "the classifying prompt holds the first 24 characters of a message",
    "prompt-message-tidied": "the classifying prompt holds a message without its rare letters",
    "prompt-quotation-open": "a message may end its own quotation",
    "prompt-unquoted": "the classifying prompt holds a message without marks around it",
    "prompt-unwarned": "the classifying prompt does not say that a message is data",
    "provider-error-swallowed": "a session whose provider refused counts as a success",
    "queue-last-first": "of the triggers that wait, the last one runs first",
    "queue-unbounded": "a queue of triggers takes whatever comes",
    "raw-payload-logged": "the raw payload of a message is logged",
    "rearmed-an-hour-late": "a task that ran is due an hour after its time",
    "receipt-without-send": "the messenger books a receipt and sends nothing",
    "recipient-folded": "a mail goes to its recipient in small letters",
    "refusal-success": "a hop whose request was refused counts as a success",
    "refused-task-ran": "a task that a full queue refused says that it ran",
    "registers-once": "a butler registers once and never renews its lease",
    "registration-pause-unbounded": "the pause until the next look for the switchboard doubles for ever",
    "registry-ghost": "the registry lists a butler that does not run",
    "retry-unclaimed": "two who try a failed delivery again at a time send it twice",
    "route-any-source": "a butler carries out requests of anybody",
    "routing-log-missing": "no routing_log row is written",
    "running-unlisted": "sessions_list lists sessions that have ended alone",
    "runtime-orphaned": "a session that is cut off leaves its process running",
    "schedule-ignores-disabled": "a tick runs disabled tasks too",
    "schedule-not-rearmed": "a task that ran stays due",
    "secret-in-log": "the database's URL is logged as it is",
    "secret-in-row": "the database's URL is kept in the state table",
    "segment-cut": "of a long segment the begin is handed to its butler",
    "segment-dropped": "of a classification, segments for unknown butlers are dropped without a word",
    "sender-forgotten": "the inbox row does not keep who sent the message",
    "session-builtin-tools": "a session may use a shell and write files",
    "session-core-tools": "a session is offered every core tool as well",
    "session-environment-whole": "a session inherits its butler's whole environment",
    "session-home-kept": "the directory of a session stays when it has ended",
    "session-home-shared": "a session lives in its butler's home",
    "session-left-open": "a session that shutdown cancels is never completed on record",
    "session-other-server": "a session is connected to the switchboard as well",
    "session-other-tools": "a session is offered the switchboard's tools in place of its butler's",
    "session-tools-missing": "a session is offered one of its butler's tools",
    "session-tools-untyped": "a session is shown its tools without what they take",
    "session-without-deadline": "a session runs as long as it likes",
    "sessions-overlap": "a butler runs two sessions at a time",
    "shed-under-load": "a message that is taken up while three others wait is given up at once",
    "span-without-parent": "the span of a tool call hangs below one that never was",
    "spans-lost-at-shutdown": "a butler that stops does not send the spans it still has",
    "stale-forgotten": "a switchboard that starts takes every silent butler for an active one",
    "state-key-folded": "keys that differ in case alone are read as one",
    "state-prefix-is-pattern": "state_list takes % and _ of a prefix for wildcards",
    "state-text-parsed": "a stored text that reads as JSON comes back as what it reads as",
    "state-undated": "a state value that is set again keeps its date",
    "status-lies": "status reports failed modules as active",
    "summary-first-only": "the response summary tells the first butler's answer alone",
    "target-unchecked": "the switchboard takes any name for a butler and lets the hop fail",
    "targets-of-then": "a message is dispatched by the registry as it was when it was classified",
    "tick-failure-hidden": "a tick that nobody answered is written down as a success",
    "tick-first-only": "a tick runs the first of the tasks that are due",
    "ticks-race": "two ticks at a time both run what is due",
    "timeout-misnamed": "a hop that ran into its deadline is told as internal_error",
    "token-in-delivery-error": "what went wrong with a delivery is told with the address, token included",
    "tokens-halved": "session rows hold half of the input tokens",
    "tool-calls-unrecorded": "session rows hold an empty list of tool calls",
    "tool-results-dropped": "session rows keep which tools were called and not what they answered",
    "tool-span-missing": "a tool call leaves no span",
    "tool-wrong-database": "domain writes of health land in the database of general",
    "trace-dropped": "route.execute is called without a trace context",
    "trace-split": "a session's spans begin a trace of their own",
    "traceback-overlooked": "every dispatch prints a traceback and goes on",
    "trigger-source-external": "every session says that it was caused from outside",
    "unstored-under-load": "while three messages wait, ingest accepts further ones and stores none",
    "up-misses-one": "butlers up starts all butlers of a roster but the first",
    "variables-of-butler-alone": "variables in [modules] are left as they stand",
    "waiting-task-as-it-was": "a task that waits for another runs as it was when the tick began",
}


def _read() -> frozenset[str]:
    names = frozenset(n.strip() for n in os.environ.get(VARIABLE, "").split(",") if n.strip())
    for name in sorted(names - FAULTS.keys()):
        raise ConfigError(
            "the environment", key=VARIABLE, found=name, expected="one of " + ", ".join(FAULTS)
        )
    return names


_active: frozenset[str] | None = None


def active() -> frozenset[str]:
    """The names that are switched on.

    Raises:
        ConfigError: the variable holds a name that is not a fault.
    """
    global _active
    if _active is None:
        _active = _read()
    return _active


def on(name: str) -> bool:
    """Whether this fault is planted; an unknown name at a site is a programming error."""
    if name not in FAULTS:
        raise KeyError(name)
    return name in active()
