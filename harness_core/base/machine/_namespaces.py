"""Whether an ordinary user may make namespaces here, which sandboxes without root are made of."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Final

#: What a distribution may have turned: file below /proc/sys, value that forbids, what to do.
_SWITCHES: Final = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "10000"),
)

#: It takes some milliseconds.
_PROBE_S: Final = 30.0


def cannot_make_namespaces(*, unshare: str = "unshare", sysctl: Path = Path("/proc/sys")) -> str:
    """Why an ordinary user cannot make a user namespace and mount in it; empty when it can.

    It is tried, as the user nobody when we are root: a security module may grant the namespace and nothing
    inside it.

    Args:
        unshare: the command of util-linux.
        sysctl: where the kernel's settings are.
    """
    if shutil.which(unshare) is None:
        return f"no {unshare} on the PATH: apt-get install util-linux"
    nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    try:
        # A mount of its own, in the new namespaces: what every sandbox begins with.
        done = subprocess.run(
            [
                unshare,
                "--user",
                "--map-root-user",
                "--mount",
                "mount",
                "-t",
                "tmpfs",
                "none",
                "/mnt",
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            timeout=_PROBE_S,
            user=nobody.pw_uid if nobody else None,
            group=nobody.pw_gid if nobody else None,
            extra_groups=[] if nobody else None,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{unshare} cannot be tried: {error}"
    if done.returncode == 0:
        return ""
    reason = done.stderr.strip() or f"exit status {done.returncode}"
    advice = [
        f"{name.replace('/', '.')} is {forbids}: sysctl {name.replace('/', '.')}={allows}"
        for name, forbids, allows in _SWITCHES
        if _setting(sysctl / name) == forbids
    ]
    if not advice:
        advice = ["no sysctl forbids it: a container's or a security module's rules do"]
    return f"{'; '.join(advice)} ({reason})"


def _setting(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
