"""Running a session's own code on the worker."""

from __future__ import annotations

from pydantic import Field

from workbench_contract.base import Model, Text

COMMAND_CHARS = 100_000
#: The longest that a command may ask for.
TIMEOUT_S = 600.0


class ExecuteRequest(Model):
    """A shell command, run in the session's root.

    Attributes:
        job_id: chosen by who wants to cancel it; else the worker names it.
    """

    command: Text = Field(min_length=1, max_length=COMMAND_CHARS)
    timeout_s: float = Field(default=30.0, gt=0, le=TIMEOUT_S)
    job_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")


class ExecutedBy(Model):
    """Who ran it.

    Attributes:
        instance: made up when the service starts.
        pid: of the process that the command was, as the service sees it.
    """

    service: str
    instance: str
    pid: int


class Executed(Model):
    """How a command ended.

    Attributes:
        exit_code: negative for the signal that ended it.
        truncated: output was longer than the worker keeps.
    """

    job_id: str
    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    cancelled: bool
    duration_s: float
    executed_by: ExecutedBy


class JobCancelled(Model):
    """The job has no process any more.

    Attributes:
        was_running: it had one when the cancellation came.
    """

    job_id: str
    was_running: bool
