"""A bottle of the reference launcher on the machine itself: what it sees, has and is given."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from suites.parity.shell import PATIENCE_S, SECRET, Shell, expect_same, staying

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]


@pytest.mark.requires("bubblewrap")
def test_a_command_runs_in_the_bottle_it_names(shell: Shell) -> None:
    """The backend of the flag runs the words after ``--``; their exit status is the launcher's."""
    script = 'id -un; printf %s "$TOKEN"; printf %s "$PLAIN" >&2; exit 7'
    words = ("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)
    done = shell.run(*words)

    expect_same("exit status", 7, done.returncode)
    expect_same("output", b"node\n" + os.fsencode(SECRET), done.stdout)
    assert b"canary-literal" in done.stderr, f"errors of the agent: found {done.stderr!r}"
    expect_same("guests that are left", [], list((shell.home / ".bot-bottle" / "guests").iterdir()))
    expect_same("recorded bottles", [], shell.recorded())


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_sees_nothing_of_its_host(shell: Shell) -> None:
    """The home of its user, other bottles and the host's processes are not there for an agent."""
    private = shell.home / "private.txt"
    private.write_text("canary-private")
    looks = {
        "a file of the user": f"cat -- {shlex.quote(str(private))}",
        "the manifests": f"ls -- {shlex.quote(str(shell.home / '.bot-bottle'))}",
        "the launcher's process": f"cat /proc/{os.getpid()}/environ",
        "writing to /usr": "touch /usr/canary-file",
        "the host's processes": f'test "$(readlink /proc/self/ns/pid)" = {own_namespace()!r}',
        "its own home": "touch ~/there && test -e ~/there",
    }
    script = "; ".join(f"{{ {look}; }} >/dev/null 2>&1; echo $?" for look in looks.values())
    done = shell.run("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)

    statuses = dict(zip(looks, done.stdout.decode().split(), strict=False))
    reached = [what for what, status in statuses.items() if status == "0"]
    expect_same("looks at the host that end", len(looks), len(statuses))
    expect_same("what an agent in a sandbox can do", ["its own home"], reached)


def of_the_host(path: str) -> str:
    """What ``cat`` or ``ls -A`` prints of a file or folder of this host; nothing where there is none."""
    place = Path(path)
    if place.is_dir():
        return "".join(f"{name}\n" for name in sorted(each.name for each in place.iterdir()))
    return place.read_text(encoding="utf-8") if place.is_file() else ""


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_has_what_programs_need(shell: Shell) -> None:
    """Names of hosts and certificates, users, processes, devices and a place to write are there."""
    looks = {
        "cat /etc/resolv.conf": of_the_host("/etc/resolv.conf"),
        "ls -A /etc/ssl | LC_ALL=C sort": of_the_host("/etc/ssl"),
        "ls -A /etc/alternatives | LC_ALL=C sort": of_the_host("/etc/alternatives"),
        "id -un; id -u": "node\n1000\n",
        "pwd; echo ~": "/home/node\n/home/node\n",
        "read -r pid _ < /proc/self/stat; test -n $pid && echo read": "read\n",
        "echo lost > /dev/null && echo written": "written\n",
        "echo kept > /tmp/file && cat /tmp/file; echo kept > ~/file && cat ~/file": "kept\nkept\n",
    }
    script = "; ".join(f"{{ {look}; }} 2>/dev/null; printf '\\0'" for look in looks)
    done = shell.run("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)

    expect_same("looks around in a sandbox", len(looks), done.stdout.count(b"\0"))
    seen = dict(zip(looks, done.stdout.decode().split("\0"), strict=False))
    for look, wanted in looks.items():
        expect_same(f"what `{look}` prints in a sandbox", wanted, seen[look])


def own_namespace() -> str:
    """The namespace of processes that this test is in."""
    return str(Path("/proc/self/ns/pid").readlink())


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_is_given_the_agents_words_as_they_are(shell: Shell) -> None:
    """Also those that are empty, or that the launcher itself has a use for."""
    words = ["", " ", "--", "--args", "{descriptor}", "{descriptor}"]
    script = 'printf "<%s>" "$@"'
    agent = ("--", "sh", "-c", script, "sh", *words)
    done = shell.run("start", "dev", "--backend", "bubblewrap", *agent)

    expect_same("the agent's words", "".join(f"<{word}>" for word in words), done.stdout.decode())


@pytest.mark.requires("bubblewrap")
def test_what_a_command_has_read_is_not_kept_open(shell: Shell) -> None:
    """While an agent runs, the launcher has values open for that one command alone, and for none before."""
    with staying(shell, "start", "dev", "--backend", "bubblewrap") as launched:
        opened = [str(link.readlink()) for link in Path(f"/proc/{launched.pid}/fd").iterdir()]
        holding = [each for each in opened if each.startswith("/memfd:")]
        launched.terminate()
        launched.wait(timeout=PATIENCE_S)

    expect_same("files in memory that the launcher has open", 1, len(holding))
