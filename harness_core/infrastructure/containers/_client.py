"""A client of the engine, and its errors as the harness raises them.

The libraries block: callers run what is here in a thread. Every call has a time limit of its own,
because a thread cannot be stopped from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from harness_core.base import limits
from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.machine import need_extra
from harness_core.infrastructure.engine import Engine, check_listening

_DISK_FULL: Final = "no space left on device"


def library(action: str = "use containers") -> Any:
    """The module ``docker``.

    Raises:
        Unavailable: it is not installed.
    """
    need_extra("containers", action=action, instead="run with --services local")
    import docker
    import docker.errors

    return docker


@contextmanager
def engine_client(engine: Engine, *, timeout_s: float = limits.CONTAINER_START_S) -> Iterator[Any]:
    """A client of this engine; closed at the end.

    Args:
        engine: whose.
        timeout_s: how long one call may be silent, in seconds.
    """
    docker = library()
    with engine_errors(f"talk to {engine}"):
        check_listening(engine)
        client = docker.from_env(
            environment=engine.environment,
            timeout=timeout_s,
            # Known since the engine was found. Without it the client asks, and when the engine is
            # silent then, it leaves its socket open.
            version=engine.api_version or None,
            use_ssh_client=engine.url.startswith("ssh://"),
        )
    try:
        yield client
    finally:
        client.close()


def unless_gone(engine: Engine, action: str, call: Callable[[Any], object]) -> bool:
    """Make one bounded call about a thing that may be gone already.

    Returns:
        Whether it was there.
    """
    with (
        engine_client(engine, timeout_s=limits.CONTAINER_REMOVE_S) as client,
        engine_errors(action),
    ):
        try:
            call(client)
        except library().errors.NotFound:
            return False
    return True


@contextmanager
def engine_errors(action: str) -> Iterator[None]:
    """Turn what the libraries raise into one clear error.

    Raises:
        NotReady: the engine did not answer in time.
        Unavailable: no engine answers any more, or its disk is full.
        HarnessError: it refuses.
    """
    import requests.exceptions

    errors = library().errors
    try:
        yield
    except requests.exceptions.Timeout as error:
        raise _silent(action) from error
    except errors.APIError as error:
        explanation = str(error.explanation or error)
        if _DISK_FULL in explanation:
            raise Unavailable(
                action,
                observed=f"the engine's disk is full: {explanation}",
                next_step="Free space below its data root: docker system df, then remove what is "
                "unused",
            ) from error
        raise HarnessError(action, observed=f"the engine refuses: {explanation}") from error
    except OSError as error:  # what requests raises is one, too
        raise Unavailable(
            action,
            observed=f"the engine does not answer ({_innermost(error)})",
            next_step="It may have been stopped in the middle of the run: see its log",
        ) from error
    except errors.DockerException as error:
        # A client asks for the engine's version first, and wraps what goes wrong with that.
        if isinstance(_root(error), TimeoutError):
            raise _silent(action) from error
        raise Unavailable(action, observed=_innermost(error)) from error


def _silent(action: str) -> NotReady:
    return NotReady(
        action,
        observed="the engine gave no answer in time",
        next_step="See whether it is overloaded or hangs: docker ps",
    )


def _root(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _innermost(error: BaseException) -> str:
    root = _root(error)
    return str(root) or type(root).__name__
