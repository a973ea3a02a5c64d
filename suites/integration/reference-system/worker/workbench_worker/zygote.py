"""The warm process: it has imported what takes seconds, and forks a process for every job.

A job arrives as a socket over the control socket (the process's standard input); its request is
read from there by the fork, behind the session's walls, and so is its answer written. This process
itself runs none of an agent's code and reads none of its files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from workbench_foundation import faults
from workbench_worker import design, fidelity, geometry, looking, physics, solids, survey, validation
from workbench_worker.confined import environment
from workbench_worker.deferred import import_build123d
from workbench_worker.walls import Walls, die_with_parent, fork_behind

_REQUEST_BYTES = 65_536

JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "build": geometry.build,
    "compare": fidelity.compare,
    "decompose": solids.decompose,
    "export": looking.export,
    "film": looking.film,
    "judge": design.judge,
    "measure": geometry.measure,
    "render": looking.render,
    "simulate": physics.simulate,
    "solids": solids.solids,
    "survey": survey.survey,
    "validate": physics.validate,
    "validate_environment": validation.validate_environment,
}


def main() -> None:
    """Import, tell so, fork until the control socket ends."""
    die_with_parent()
    # While the stack boots, others need the processors more; root takes them back below.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 10)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    control = socket.socket(fileno=0)
    import workbench_physics.simulate  # noqa: F401

    control.send(b"physics")
    import_build123d()
    import coacd  # noqa: F401
    import embreex.mesh_construction  # noqa: F401
    import embreex.rtcore_scene  # noqa: F401
    import imageio_ffmpeg  # noqa: F401
    import PIL.ImageDraw
    import PIL.ImageFont
    import PIL.PngImagePlugin  # noqa: F401
    import workbench_rendering.solids
    import workbench_rendering.video
    import workbench_rendering.views  # noqa: F401

    # Behind the walls there is no environment to read them from.
    faults.active()
    control.send(b"geometry")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(control, 16, 1)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            os.setpgid(0, 0)
            _serve(fds[0])
        os.close(fds[0])


def _serve(fd: int) -> None:
    """One job; never returns."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    talk = os.fdopen(fd, "r+b", buffering=0)
    try:
        line = b""
        while not line.endswith(b"\n"):
            part = talk.read(_REQUEST_BYTES)
            if not part:
                os._exit(1)
            line += part
        request = json.loads(line)
        _say(talk, {"pid": os.getpid()})
        pid = fork_behind(Walls(**request["walls"]))
        if pid == 0:
            os.environ.clear()
            os.environ.update(environment())
            _say(talk, _answer(request))
            os._exit(0)
    except OSError as error:
        _say(talk, {"broken": str(error)})
        os._exit(1)
    os.waitpid(pid, 0)
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        # What a script prints is no part of the answer, nor of the worker's log.
        nowhere = os.open("/dev/null", os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        return {"result": JOBS[request["kind"]](**request["arguments"])}
    except geometry.ModelError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": "cannot finish: the job needs more memory than it may have"}
    # The edge of this process: a defect of ours or of a library ends the job, and is answered to its caller.
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"broken": f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"}


def _say(talk: Any, message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[talk.write(data) :]


if __name__ == "__main__":
    sys.exit(main())
