"""Planted faults: the ways this stack is made wrong on purpose, to prove that a test sees it.

`WORKBENCH_FAULT` is a comma-separated list of the names below, read once per process. Without it
nothing here does anything. A site reads ``if faults.on("simulation-lock-ignored"):``.
"""

from __future__ import annotations

import os

from workbench_foundation.errors import ConfigError

VARIABLE = "WORKBENCH_FAULT"

FAULTS = {
    "answer-of-wrong-type": "an episode is answered with its seed as a text",
    "answer-undeclared-field": "a submission is answered with a field that is not declared",
    "asset-cut-short": "an object lacks the last byte of its file",
    "asset-wrong-bucket": "an asset's row names a bucket that it is not in",
    "benchmark-before-approval": "engineers may start from a benchmark that nobody has approved",
    "benchmark-of-agent": "a planner that was given objectives is held to those that it wrote itself",
    "benchmark-of-last-session": "a planner is held to the objectives that the last session was given",
    "benchmark-of-others": "whoever starts from a benchmark is given the latest one",
    "cancel-claimed": "the worker answers that it has cancelled a job, and has not",
    "cancel-ends-others": "the worker ends the processes of all jobs when one is cancelled",
    "cap-exclusive": "a target exactly at its cap is refused",
    "catalogue-answer-remembered": "a search is answered what an earlier one of its category was",
    "catalogue-cap-exclusive": "a part exactly at a cap is left out",
    "catalogue-cursor-forgotten": "a cursor is good only in the process that made it",
    "catalogue-event-repeated": "from the second search of an episode on each has two events",
    "catalogue-journal-lost": "a search has an event and no line in the journal",
    "catalogue-lost-for-good": "after an outage of the database the catalogue stays away",
    "catalogue-margin-invented": "every part meets every constraint by nothing",
    "catalogue-nearest-offered": "where nothing fits, the nearest part is a candidate",
    "catalogue-page-skips": "a page leaves out the parts that cost as much as the last one before it",
    "catalogue-price-unjudged": "an estimate's price of a catalogue part may be any",
    "catalogue-read-as-owner": "the catalogue is read by the role that owns it",
    "catalogue-role-writes": "the role that reads the catalogue may write to it",
    "catalogue-search-counted": "every search writes to the catalogue",
    "catalogue-spec-ignored": "a constraint on a specification that there is not is left out",
    "catalogue-version-unjudged": "an estimate may name any version of the catalogue",
    "catalogue-words-in-sql": "what is searched for becomes part of a query",
    "check-invented": "every part is reported as a cube of 10 mm",
    "code-run-by-controller": "the controller's own processes run the commands of agents",
    "code-run-in-need": "when the worker does not answer, the controller's processes run commands",
    "comments-unneeded": "a review that rejects may say nothing",
    "connections-unbound": "how parts hold together may change after their validation",
    "controls-of-first-session": "a motor is told what the first session told one of its name",
    "decision-case-folded": "a decision may be written in any case",
    "decision-evidence-of-first": "every decision rests on what the first one rested on",
    "decision-of-last-round-alone": "of an episode's decisions the last alone is kept",
    "decision-without-images": "a decision is kept without the images that were viewed",
    "density-fixed": "every design is simulated as if it were of aluminium",
    "density-of-last-design": "a design is simulated with the density of the first that was",
    "design-cost-unjudged": "a design may cost what it likes",
    "design-judged-once": "a session's design is judged by its first verdict",
    "design-weight-unjudged": "a design may weigh what it likes",
    "draft-unjudged": "a moulded part needs no draft",
    "environment-judged-once": "a session's environment is looked at once, and never again",
    "environment-links-followed": "a link in place of a file of the environment is that file",
    "environment-of-last-session": "every environment is held against the first that was handed over",
    "environment-shadow-ignored": "a module beside the environment may have its name",
    "environment-unjudged": "an environment may become any other",
    "estimate-judged-once": "after its first submission a session's estimate is not read again",
    "estimate-unneeded": "a planner hands over without a cost estimate",
    "etag-of-another-object": "an asset's row has the etag of something else",
    "event-dropped": "the controller leaves out every fifth event that it pulls",
    "event-unwritten": "every seventh event is numbered and not written",
    "events-out-of-order": "stored events are answered in the order of their texts",
    "events-stored-twice": "an event that is pulled again is stored again",
    "evidence-read-by-others": "what one reviewer has read counts for the next",
    "evidence-unread": "a review may rest on what was not read",
    "failed-call-told-as-done": "the model is told that a call which failed was carried out",
    "failure-completed": "an episode that failed is written down as completed",
    "fastener-count-unjudged": "one fastener holds a rigid pair",
    "first-handover-alone": "of an episode's hand-overs the first alone is kept",
    "flow-context-of-others": "who is asked once more is told what the latest review of any flow says",
    "flow-context-withheld": "who is asked once more is not told why",
    "flow-result-of-first-round": "a flow comes to its first design, whichever was approved",
    "flow-reviews-first-design": "reviewers are given the first design of the flow, in every round",
    "flow-rounds-in-memory": "the rounds of a flow are those since its process was started",
    "flow-step-without-event": "a step of a flow is a row and no event",
    "flow-unbounded": "a flow goes round without end",
    "flow-unreviewed": "a flow comes to what its coder hands over, reviewed or not",
    "forbid-after-goal": "of goal and forbid zone in one step the goal wins",
    "gate-one-round-late": "a gate judges the files as they were when they were last submitted",
    "handover-forgotten-by-restart": "a worker that was started again does not know what its sessions are for",
    "handover-from-workspace": "the bytes of a hand-over are those that the files have when they are fetched",
    "health-always-healthy": "health says healthy whatever its dependencies answer",
    "health-names-none": "health answers 503 and calls every dependency ok",
    "health-probes-collide": "the worker is not healthy to the second of two who ask at once",
    "hole-diameters-unjudged": "the two holes of a fastener may be of any diameters",
    "host-checked-late": "a request for another host is carried out, and its answer withheld",
    "host-checked-on-health-alone": "Host is looked at for health, and for nothing else",
    "host-prefix-accepted": "a Host that begins like one of the service is taken for it",
    "host-suffix-accepted": "a Host that ends like one of the service is taken for it",
    "host-unchecked": "requests for any host are carried out",
    "infill-ignored": "prints are laid without hollows",
    "instability-as-timeout": "physics that became unstable is reported as out of time",
    "interrupt-changes-row-only": "an interruption changes the episode's row and nothing else",
    "interrupt-ends-others": "an interruption cancels the workflow of every running episode",
    "interrupt-leaves-job": "an interruption ends the workflow and leaves its job running",
    "interval-of-normal": "the interval of a success rate is that of the normal distribution",
    "jitter-ignored": "the moved object is judged without its runtime jitter",
    "jitter-one-sided": "the moved object is jittered to one side alone",
    "key-checked-late": "a request with a wrong key is carried out, and its answer withheld",
    "key-prefix-accepted": "the beginning of the key is taken for the key",
    "lint-failure-without-event": "code that does not lint has no event",
    "listing-trips": "a listing fails when a file goes away while it is made",
    "logs-uncorrelated": "log lines do not say which episode they tell of",
    "material-any": "a material that there is not is taken for one that there is",
    "memo-uncorrelated": "a workflow does not say which episode and trace it is of",
    "model-key-cut": "the model is asked with a key that lacks its last letter",
    "motor-unclamped": "a motor exerts whatever it is told",
    "moving-parts-unjudged": "nothing is said about moving parts",
    "numbers-in-quotes-taken": "a number in quotes is a number",
    "object-uncorrelated": "neither key nor metadata of an object say whose it is",
    "objectives-of-first-run": "a session's runs are judged by the objectives of its first",
    "objectives-remembered": "after its first submission a session's objectives are not read again",
    "one-finding-at-a-time": "a refusal tells the first finding alone",
    "outage-accepted": "a submission that Temporal did not take is accepted, and waits for ever",
    "outage-completed": "an episode that was never started is written down as completed",
    "outage-counted-from-start": "an outage of Temporal is taken to be as old as the episode",
    "outage-leaves-stuck": "an episode that Temporal has forgotten runs for ever",
    "overload-of-first-motor": "an overload names the first motor, whichever it is",
    "overload-one-way": "a motor at its limit the other way is never overloaded",
    "overload-without-rest": "a motor's rests do not count",
    "path-prefix-checked": "a path is allowed when it begins like the folder of all sessions",
    "phase-ignored": "a sinusoid begins at 0, whatever its phase",
    "placeholder-accepted": "a placeholder of the template is a value",
    "plan-always-accepted": "an empty plan is accepted",
    "plan-fences-read": "headings inside code fences are headings of the plan",
    "plan-judged-once": "after its first submission a session's plan is not judged again",
    "plan-order-ignored": "the headings of a plan may stand in any order",
    "plan-prices-unjudged": "the plan's prices may be others than the estimate's",
    "price-of-first-round": "a session's estimate is priced as it was the first time",
    "prices-of-first-look": "catalogue parts are those that were looked up first",
    "pull-ends-at-a-page": "of a session's events the controller pulls one page at a time",
    "queue-times-invented": "a simulation says that it began when it was asked for",
    "refusal-goes-to-coder": "a confirmed refusal of the plan goes back to the coder",
    "refusal-proof-of-others": "a refusal may rest on the proof of another episode",
    "refusal-unproven": "what a refusal calls its proof is taken for one",
    "refusal-without-event": "a hand-over that is refused leaves no event",
    "retry-recorded-again": "a call that is tried again is one more call on record",
    "review-judged-once": "after its first submission a session's review is not judged again",
    "runs-alike": "all runs of a request begin as the first does",
    "second-review-approves": "the second review of a flow approves, whatever it says",
    "seed-from-clock": "a simulation is tracked with another seed than the one asked for",
    "seed-untracked-on-failure": "a simulation that fails is tracked without variant and seed",
    "seed-used-once": "a seed that is asked for again gives other runs",
    "simulate-unvalidated": "a design is simulated that was not validated",
    "simulation-last-first": "of the simulations that wait, the last one runs first",
    "simulation-lock-ignored": "simulations run side by side",
    "simulation-lock-per-session": "simulations wait for those of their own session alone",
    "submission-judged-again": "a submission whose answer was lost is one more on record",
    "submit-unvalidated": "a design is handed over that was not validated",
    "symlink-followed": "a link inside a session may lead out of it",
    "targets-judged-once": "after its first submission a session's targets are not held against the caps",
    "task-cut": "the prompt holds the beginning of the task alone",
    "task-withheld": "the prompt lacks the task",
    "tmp-shared": "all sessions have the same /tmp",
    "todo-deletion-ignored": "an issued entry may be deleted",
    "todo-ids-shared": "entries of the same text have the same id in all lists",
    "todo-of-last-session": "a list is held against the entries of the session that was opened last",
    "todo-open-accepted": "a list with open entries is handed over",
    "todo-relearned": "from the second submission on, the entries that are left are those that were issued",
    "tool-unoffered": "the model is not offered to lint",
    "transition-unwritten": "that an episode runs is never written down",
    "transition-without-event": "a step of an episode is a row and no event",
    "transitions-at-one-time": "all steps of an episode have the time of its submission",
    "typed-numbers-trusted": "numbers that were typed are not held against those that are computed",
    "units-unshared": "what is paid once is paid by each unit",
    "upload-failure-ignored": "an asset that was not stored counts as kept",
    "upload-failure-without-event": "an upload that failed leaves neither row nor event",
    "upload-retried-for-ever": "an upload is tried without end",
    "upper-bounds-unjudged": "an object may leave the bounds upwards",
    "validity-for-ever": "a design that has passed has passed, whatever becomes of it",
    "validity-of-script-alone": "what a script imports may change after its validation",
    "variant-of-each-run": "a variant is another one in each of its runs",
    "variant-untracked": "every simulation is tracked with the variant default",
    "walls-of-paper": "a session's code sees the files of all sessions",
    "walls-unjudged": "walls may be of any thickness",
    "waypoints-jump": "a motor jumps from one waypoint to the next",
    "weight-cap-unjudged": "a design may be as heavy as it likes",
    "weight-target-unjudged": "the weight that a planner aims at is not held against its cap",
    "worker-uncorrelated": "requests to the worker lack the episode",
    "workflow-id-invented": "the steps of an episode name a workflow that Temporal does not know",
    "wrong-key-accepted": "any key is the key",
    "zone-unjudged": "a design may leave its build zone",
    "zones-by-centre": "a zone is met by the object's centre, not by its surface",
    "zones-judged-at-times": "zones are looked at in every fiftieth step",
}


def _read() -> frozenset[str]:
    names = frozenset(n.strip() for n in os.environ.get(VARIABLE, "").split(",") if n.strip())
    for name in sorted(names - FAULTS.keys()):
        raise ConfigError(VARIABLE, found=name, expected="one of " + ", ".join(FAULTS))
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
