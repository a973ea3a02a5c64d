"""Planted faults: the ways this reference is made wrong on purpose, to prove that a test sees it.

`BOT_BOTTLE_FAULT` is a comma-separated list of the names below. Without it nothing here does
anything. A site reads ``if faults.on("approve-twice"):``.
"""

from __future__ import annotations

import os

from bot_bottle.errors import BottleError

VARIABLE = "BOT_BOTTLE_FAULT"

FAULTS = {
    "approval-noted-first": "a proposal is noted as applied before it is",
    "approvals-alone-by-proposal": "two approvals exclude each other for one proposal only",
    "approve-by-name": "an approval goes to the first bottle of the same manifest",
    "approve-dispatches-to-default": "approval goes to the chosen backend, not the recorded one",
    "approve-twice-applies-twice": "an applied proposal is applied again",
    "approved-image-forgotten": "an approved image is gone when the bottle is resumed",
    "bubblewrap-agent-without-env": "the agent has none of the variables that a script has",
    "bubblewrap-binds-the-root": "the guest sees all of the host's files, read-only",
    "bubblewrap-drafts-by-name": "a file is written under a longer name first",
    "bubblewrap-env-inherited": "the guest inherits the environment of the host",
    "bubblewrap-terminal-status-lost": "the exit status of an agent with a terminal is always 0",
    "bubblewrap-unknown-user-is-root": "a script whose user is not known runs as root",
    "cleanup-forgets-smolmachines": "machines of crashed launches are left behind",
    "cleanup-takes-preserved": "cleanup removes the state of preserved bottles",
    "docker-approval-revives": "an approval goes on although its container went meanwhile",
    "docker-block-that-fails-leaves-guest": "the container stays when its block ends by an error",
    "docker-cleanup-removes-foreign": "cleanup removes every container with a similar name",
    "docker-close-is-stateless": "a bottle that was closed removes the container of its name again",
    "docker-closes-by-filter": "a close removes every container whose name holds the bottle's",
    "docker-drops-second-literal": "only the first literal reaches the container",
    "docker-env-file-left-behind": "the env file stays after the launch",
    "docker-env-file-for-all": "other users can read the env file",
    "docker-exit-code-lost": "a script's exit status is always 0",
    "docker-forwards-the-agents-socket": "the host's SSH_AUTH_SOCK reaches the container",
    "docker-is-redirected": "a secret called DOCKER_HOST redirects docker itself",
    "docker-literal-newline-split": "a literal with a newline becomes two entries of the env file",
    "docker-mounts-the-home": "the home of the user is mounted in the container",
    "docker-prints-what-it-inspects": "an approval prints the container it changes, values and all",
    "docker-remediation-removes-first": "the old container is removed before the new one runs",
    "docker-secret-on-argv": "secrets are passed as -e NAME=VALUE",
    "docker-strips-spaces": "literals lose the space around them",
    "empty-host-value-missing": "a host variable that is empty is taken for a missing one",
    "hold-let-go-before-guest": "a bottle is let go of while its guest is there",
    "long-name-is-a-traceback": "the file system's own error is shown for a name that is too long",
    "manifest-unknown-key-ignored": "an unknown key of a manifest is ignored",
    "metadata-default-backend": "the record says docker, whatever the backend",
    "old-records-resumed-alone": "a record without a backend is docker's to a resume only",
    "preserved-meanwhile-is-removed": "a bottle that is preserved while it ends is removed",
    "prompt-answer-stripped": "what is typed loses the space around it",
    "proposals-are-counted": "the id of a proposal is how many there are",
    "resume-asks-for-a-choice": "resume refuses while an unknown backend is chosen",
    "resume-deletes-damaged": "a damaged record is deleted with all its state",
    "resume-ignores-recorded-backend": "resume takes the chosen backend instead of the recorded one",
    "secret-in-a-log-of-its-own": "resolved values are logged by another logger than the host's",
    "secret-in-a-trace": "resolved values are appended to a file in the user's home",
    "secret-in-error": "a failing command is reported with its whole environment",
    "secret-in-host-environ": "secrets are put into the launcher's own environment",
    "secret-in-log": "resolved values are logged while debugging",
    "smolmachines-close-twice-fails": "a second close raises",
    "smolmachines-drops-second-secret": "only the first secret reaches the machine",
    "smolmachines-lists-everything": "every recorded bottle is listed as a machine of its own",
    "smolmachines-quotes-literals": "literals arrive with quotes around them",
    "smolmachines-secret-on-argv": "secrets are passed as -e NAME=VALUE",
    "smolmachines-stderr-merged": "errors of a script are part of its output",
    "smolmachines-teardown-before-refusal": "the machine is deleted before the proposal is refused",
    "smolmachines-user-ignored": "every script runs as root",
    "tools-words-unredacted": "values are in the refusal when a tool prints them",
    "unknown-flag-passed-over": "a backend that the flag does not know is that of the variable",
}


def active() -> frozenset[str]:
    """The names that are switched on."""
    names = {name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()}
    for name in sorted(names - FAULTS.keys()):
        raise BottleError(f"cannot read {VARIABLE}: found {name}, expected one of {list(FAULTS)}")
    return frozenset(names)


def on(name: str) -> bool:
    """Whether this fault is planted; an unknown name at a site is a programming error."""
    if name not in FAULTS:
        raise KeyError(name)
    return name in active()
