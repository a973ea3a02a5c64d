"""Planted faults: the ways this reference is made wrong on purpose, to prove that a test sees it.

`SEXPD_FAULT` is a comma-separated list of the names below, read once. Without it nothing here does
anything. A site reads ``if faults.on("junk-kills"):``. ``sexpd faults`` lists them.
"""

from __future__ import annotations

import functools
import os

from sexpd.errors import ConfigError

VARIABLE = "SEXPD_FAULT"

FAULTS = {
    "all-down-silent": "user input is not answered when no provider answers",
    "answer-cut": "of a model's answer the first 120 letters are sent",
    "answered-address-logged": "the address of a provider that has answered is logged as it is",
    "cascade-skips-second": "the second provider in the order is never asked",
    "cli-skips-skills": "text that comes by the CLI is not put to the skills",
    "data-unchecked": "health does not look at the data directory",
    "depth-unbounded": "nesting is not bounded",
    "emacs-properties-lost": "a Flight Plan node is sent without its properties",
    "equal-steps-once": "of the steps of a plan that are alike the first is kept",
    "fd-leak": "the socket of a connection that sent a malformed frame is never closed",
    "first-address-kept": "a link keeps the first address that it had",
    "floats-divided-exactly": "the quotient of floats is a ratio",
    "four-models-at-once": "of the questions to models four wait at once, others until they are late",
    "frame-size-unbounded": "a frame may declare any size",
    "gateway-list-empty": "the gateway registry is never filled",
    "half-frame-deadlock": "while one client is in the middle of a frame, no other is read",
    "handshake-no-version": "the handshake has no version",
    "harmless-refused": "a command is refused when a quoted argument looks dangerous",
    "health-asks-last-provider": "health asks the last provider for all of them",
    "heartbeat-answered": "a heartbeat is answered",
    "junk-kills": "a malformed frame ends the daemon",
    "keys-in-environ": "the keys of providers stay in the environment that the process shows",
    "keywords-kept": "keywords are not upper-cased on reading",
    "leaked-listener": "after a stop a process goes on listening on the port",
    "length-in-bytes": "the length prefix counts bytes, both ways",
    "long-frames-nest": "lists in a frame of more than 16384 characters may be nested 1000 deep",
    "lower-case-f-refused": "an f in lower case is no digit of a length",
    "malformed-silent": "a malformed frame closes the connection without a word",
    "memory-growth": "every frame ever received is kept",
    "meta-dropped": "replies carry no META",
    "meta-of-the-last-command": "the outcome of a command bears the META of the command that was asked last",
    "metaless-unanswered": "user input without META is not answered",
    "minus-lost": "an address that begins with a minus is linked without it",
    "model-holds-up-others": "while a model is asked, no other client is answered",
    "model-route-unchecked": "a command that a model proposes bypasses the dispatcher",
    "model-runs-elsewhere": "commands of a model or a skill run beside the configured root",
    "nonsense-accepted": "whatever a provider answers counts as an answer",
    "output-cut": "of a command's output the first 1024 letters come back",
    "pattern-missed": "the dispatcher does not know what find -delete and find -exec do",
    "plan-id-of-text": "the ID of a Flight Plan is made of its text",
    "progress-of-connection": "how far a frame got counts those before it",
    "python-path-set": "a command may say by PYTHONPATH what python3 runs first",
    "question-cut": "a model is asked the first 80 letters of a text",
    "raw-wire-unchecked": "a shell request on the wire bypasses the dispatcher",
    "reader-evaluates": "the reader accepts #. and evaluates the form",
    "reasons-of-all": "who was passed over is told of all questions at a time",
    "reply-wrong-connection": "replies go to the connection that was opened last",
    "rmdir-parents": "`rmdir -p` is let through, with the directories above its own",
    "sdiff-harmless": "sdiff counts as a program that only reads",
    "send-overtaken": "what is asked behind a text that is sent is answered before it",
    "shell-reply-lost": "a shell command runs and its outcome is not sent",
    "silent-webhook-quoted": "the error of a text that a platform never answers quotes the webhook",
    "skill-broken-unreported": "a skill that is broken is skipped without being reported",
    "skill-dropped": "the last skill in the order is silently dropped",
    "skill-file-cut": "of a file of more than 256 KiB a skill is loaded without the lines beyond",
    "skill-order-ignored": "skills are loaded by name, whatever they require",
    "skill-tables-ignored": "what stands beside the table of a skill is passed over, and the rest loaded",
    "stale-health": "the first health result is served for ever",
    "status-unhealthy-succeeds": "`sexpd status` ends with 0 where health is UNHEALTHY or UNKNOWN",
    "stop-cuts-answers": "a stop waits for nothing: an answer that has begun is cut off",
    "stop-waits-for-model": "a stop waits for a model that is being asked",
    "terminal-unlisted": "the registry does not list the gateway of the terminal client",
    "text-route-unchecked": "a command typed as /shell text bypasses the dispatcher",
    "timed-out-output-lost": "of a command that timed out nothing comes back of its stdout",
    "timeout-leaves-process": "a command that timed out is reported and goes on running",
    "timeout-stops-cascade": "a provider that times out ends the cascade",
    "tui-no-reconnect": "the terminal client does not reconnect",
    "typed-command-unbounded": "a command that is typed may take the longest time there is",
    "typed-early-dropped": "of more than 50 texts that are typed without a connection the oldest are lost",
    "typed-stderr-lost": "a command that is typed and prints to both streams is answered by its stdout alone",
    "typed-streams-mixed": "`sexpd shell` prints a command's stderr to its own stdout",
    "unlink-not-persisted": "an unlinked messaging link is back after a restart",
    "unlink-takes-namesakes": "unlinking a name unlinks every name that begins with it",
    "whitespace-refused": "whitespace between frames is malformed",
    "writers-time-ignored": "a command that writes a file has the default time, whatever it asks for",
    "wrong-place-named": "the error of a payload names another character than that where it broke",
}


@functools.cache
def active() -> frozenset[str]:
    """The names that are switched on.

    Raises:
        ConfigError: the variable holds a name that is not a fault.
    """
    names = frozenset(n.strip() for n in os.environ.get(VARIABLE, "").split(",") if n.strip())
    for name in sorted(names - FAULTS.keys()):
        raise ConfigError(
            key=VARIABLE, found=name, expected="one of " + ", ".join(FAULTS)
        )
    return names


def on(name: str) -> bool:
    """Whether this fault is planted; an unknown name at a site is a programming error."""
    if name not in FAULTS:
        raise KeyError(name)
    return name in active()
