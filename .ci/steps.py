"""Run every ``run:`` step of a job of a workflow here: in a clean clone, as an ordinary user.

    nox -s workflow -- sessions.yml plan --input select="-s lint"
    nox -s workflow -- sessions.yml session --input select=default --matrix job.session=parity

A job is what GitHub would start: the jobs that it needs run before it, each in a clone of the last
commit (what is not committed is not there), with an empty home and none of the caller's variables
but those of package indexes and proxies. Started by root, its steps are run by the user ``nobody``.

What a step leaves running ends with it. A step with ``sudo`` runs as root when root started this, and is left out with --without-sudo.
Actions are not run: checkout and setup-python are done otherwise (a clone, a virtual environment),
caches are empty, artifacts are listed. What else a step asks for is refused by name.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from expressions import CannotEvaluateError, condition, substitute

ROOT = Path(__file__).resolve().parent.parent

#: What a step may ask for. A key that is not here would change what is run.
_STEP_KEYS = {"name", "id", "if", "run", "uses", "with", "env"}
_JOB_KEYS = {
    *("name", "needs", "if", "runs-on", "timeout-minutes", "permissions", "outputs", "strategy"),
    *("steps", "env", "defaults"),
}
#: After SIGTERM, when the job's time is over.
GRACE_S = 10.0

#: The caller's variables that steps see: how packages are reached.
_PASSED = re.compile(
    r"^(PIP_.*|UV_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|(https?|no|all)_proxy)$", re.IGNORECASE
)
_SHELLS = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}


class RefusedError(Exception):
    """The workflow asks for something that is not done here."""


@dataclass(frozen=True)
class Step:
    """One step that is over, for the table at the end."""

    job: str
    name: str
    status: str
    seconds: float


@dataclass
class Session:
    """One call of this script: what was asked for, and what has happened so far.

    Attributes:
        options: the command line.
        workflow: the file.
        contexts: ``inputs``, ``github``, ``needs``, … by name.
        done: the steps so far.
    """

    options: argparse.Namespace
    workflow: Mapping[str, object]
    contexts: dict[str, object]
    user: pwd.struct_passwd
    done: list[Step] = field(default_factory=list)

    def run(self, name: str) -> bool:
        """Run a job after those that it needs; answer whether it succeeded."""
        job = self.workflow["jobs"].get(name)
        if job is None:
            known = ", ".join(self.workflow["jobs"])
            raise RefusedError(f"there is no job {name!r}; there are {known}")
        if unknown := job.keys() - _JOB_KEYS:
            raise RefusedError(f"job {name}: {', '.join(sorted(unknown))} is not done here")
        needs = self.contexts.setdefault("needs", {})
        for needed in [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []):
            if needed not in needs and not self.run(needed):
                print(f"job {name} is not run: {needed}, which it needs, failed", flush=True)
                return False
        matrix = self._combination(name, job)
        with tempfile.TemporaryDirectory(prefix="workflow-", ignore_cleanup_errors=True) as work:
            running = Job(self, name, job, matrix, Path(work))
            succeeded = running.run()
            needs[name] = {
                "result": "success" if succeeded else "failure",
                "outputs": {
                    key: running.substituted(text) for key, text in job.get("outputs", {}).items()
                },
            }
        return succeeded

    def _combination(self, name: str, job: Mapping[str, object]) -> Mapping[str, object]:
        """The one combination of the job's matrix that the command line names."""
        axes = job.get("strategy", {}).get("matrix", {})
        values = {key: substitute(value, self.contexts, {}) for key, value in axes.items()}
        if values.keys() & {"include", "exclude"} or not all(map(_is_list, values.values())):
            raise RefusedError(f"job {name}: its matrix is more than lists")
        every = [
            dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
        ]
        wanted = dict(text.partition("=")[::2] for text in self.options.matrix)
        left = [
            each
            for each in every
            if all(str(_at(each, key)) == value for key, value in wanted.items())
        ]
        if axes and len(left) != 1:
            shown = "\n".join(f"  {json.dumps(each)}" for each in every)
            raise RefusedError(
                f"job {name}: --matrix {wanted} names {len(left)} of these combinations,"
                f" not one:\n{shown}"
            )
        return left[0] if axes else {}


class Job:
    """One job: its clone, its user, its steps."""

    def __init__(
        self,
        session: Session,
        name: str,
        job: Mapping[str, object],
        matrix: Mapping[str, object],
        work: Path,
    ) -> None:
        self._session = session
        self._name = name
        self._job = job
        self._work = work
        self._workspace = work / "workspace"
        self._failed = False
        self._steps: dict[str, object] = {}
        self._contexts = {
            **session.contexts,
            "matrix": matrix,
            "steps": self._steps,
            "env": {},
            "runner": {"os": "Linux", "temp": str(work / "temp")},
        }
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._path = ":".join([*session.options.path, system])
        self._env: dict[str, str] = {}
        for folder in (work, *(work / each for each in ("home", "temp", "tools"))):
            folder.mkdir(exist_ok=True)
            self._hand_over(folder)

    def run(self) -> bool:
        """Run the steps in their order; answer whether the job succeeded."""
        minutes = float(self.substituted(self._job.get("timeout-minutes", 360)))
        self._ends = time.monotonic() + minutes * 60
        print(f"== job {self._name}: as {self._session.user.pw_name}, {minutes:g} minutes at most")
        for number, step in enumerate(self._job["steps"], start=1):
            self._step(number, step)
        return not self._failed

    def substituted(self, text: object) -> object:
        """The text with its expressions replaced."""
        return substitute(text, self._contexts, self._functions())

    def _functions(self) -> dict[str, object]:
        return {
            "always": lambda: True,
            "success": lambda: not self._failed,
            "failure": lambda: self._failed,
            "cancelled": lambda: False,
        }

    def _step(self, number: int, step: Mapping[str, object]) -> None:
        """One step: run, done otherwise, or left out."""
        name = str(step.get("name") or step.get("uses") or step.get("run", "")).splitlines()[0]
        if unknown := step.keys() - _STEP_KEYS:
            raise RefusedError(f"step {name!r}: {', '.join(sorted(unknown))} is not done here")
        if "id" in step:
            self._steps[step["id"]] = {"outputs": {}, "outcome": "skipped"}
        test = step.get("if", "success()")
        aware = re.search(r"\b(always|success|failure|cancelled)\(", str(test))
        holds = condition(test, self._contexts, self._functions())
        began = time.monotonic()
        print(f"-- {self._name} {number}: {name}", flush=True)
        if not holds or (self._failed and not aware):
            status = "not run: its condition does not hold"
        elif "uses" in step:
            status = self._use(str(step["uses"]).partition("@")[0], step)
        else:
            status = self._run_script(number, step)
        self._failed |= status.startswith("failed")
        print(f"   {status}", flush=True)
        self._session.done.append(Step(self._name, name, status, time.monotonic() - began))

    # --- What is run ------------------------------------------------------------------------------

    def _run_script(self, number: int, step: Mapping[str, object]) -> str:
        script = str(self.substituted(step["run"]))
        root = re.search(r"\bsudo\b", script) is not None
        if root and self._session.options.without_sudo:
            return "not run: it needs sudo"
        defaults = {**self._session.workflow.get("defaults", {}), **self._job.get("defaults", {})}
        shell = defaults.get("run", {}).get("shell")
        if shell not in _SHELLS:
            raise RefusedError(f"the shell {shell!r} is not known here")
        file = self._work / f"step-{number}.sh"
        file.write_text(script, encoding="utf-8")
        files = {
            variable: self._made(f"{number}-{variable}")
            for variable in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        }
        env = self._environment(step, files)
        status = self._wait([*_SHELLS[shell], str(file)], env=env, root=root)
        if "id" in step:
            self._steps[step["id"]]["outputs"] = _assignments(files["GITHUB_OUTPUT"])
        self._env |= _assignments(files["GITHUB_ENV"])
        self._path = ":".join([*files["GITHUB_PATH"].read_text().split(), self._path])
        if summary := files["GITHUB_STEP_SUMMARY"].read_text().strip():
            print("   summary of this step:\n" + re.sub(r"^", "   | ", summary, flags=re.MULTILINE))
        return status + (", as root: it needs sudo" if root else "")

    def _environment(self, step: Mapping[str, object], files: Mapping[str, Path]) -> dict[str, str]:
        passed = {name: value for name, value in os.environ.items() if _PASSED.match(name)}
        given: dict[str, str] = {}
        for level in (self._session.workflow, self._job, step):
            for name, value in level.get("env", {}).items():
                found = self.substituted(value)
                given[name] = {True: "true", False: "false", None: ""}.get(found, str(found))
        return {
            **passed,
            "HOME": str(self._work / "home"),
            "USER": self._session.user.pw_name,
            "PATH": self._path,
            "LANG": "C.UTF-8",
            "TMPDIR": str(self._work / "temp"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_SERVER_URL": "https://repository.test",
            "GITHUB_WORKSPACE": str(self._workspace),
            "RUNNER_TEMP": str(self._work / "temp"),
            **{name: str(path) for name, path in files.items()},
            **self._env,
            **given,
        }

    def _wait(self, argv: Sequence[str], *, env: Mapping[str, str], root: bool) -> str:
        """Run one script to its end, or to the end of the job's time."""
        drop = {"user": self._session.user.pw_uid, "group": self._session.user.pw_gid}
        if os.geteuid() == 0 and root:
            # It is root already: sudo has nothing to do.
            shim = self._work / "tools" / "sudo"
            shim.write_text('#!/bin/sh\nexec "$@"\n')
            shim.chmod(0o755)
            env = {**env, "PATH": f"{shim.parent}:{env['PATH']}"}
        dropped = {**drop, "extra_groups": []} if os.geteuid() == 0 and not root else {}
        child = subprocess.Popen(
            argv,
            cwd=self._workspace if self._workspace.exists() else self._work,
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **dropped,
        )
        try:
            ended = _ends_within(child, self._ends - time.monotonic())
            if not ended:
                os.killpg(child.pid, signal.SIGTERM)
                _ends_within(child, GRACE_S)
        finally:
            # Not reaped yet, so the number is still its own: what it left behind ends with it.
            os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
        if not ended:
            return "failed: the job's time ran out"
        return "ran" if code == 0 else f"failed: status {code}"

    # --- What is done otherwise ---------------------------------------------------------------------

    def _use(self, action: str, step: Mapping[str, object]) -> str:
        given = {key: self.substituted(value) for key, value in step.get("with", {}).items()}
        if action == "actions/checkout":
            return self._check_out()
        if action == "actions/setup-python":
            return self._set_up_python(str(given["python-version"]))
        if action == "actions/cache/restore":
            if "id" in step:
                self._steps[step["id"]]["outputs"] = {"cache-matched-key": ""}
            return f"read, not run: nothing is in the cache for {given['path']}"
        if action == "actions/upload-artifact":
            kept = self._workspace / str(given["path"])
            found = kept.rglob("*") if kept.is_dir() else [kept]
            number = sum(path.is_file() for path in found)
            return f"read, not run: {given['name']} would hold {number} file(s) of {given['path']}"
        if action in {"actions/cache/save", "actions/download-artifact"}:
            return f"read, not run: {json.dumps(given)}"
        raise RefusedError(f"the action {action} is not known here")

    def _check_out(self) -> str:
        clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{self._session.options.root}"]
        subprocess.run([*clone, str(self._workspace)], check=True)
        asked = ["git", "-C", str(self._workspace), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        for path in [self._workspace, *self._workspace.rglob("*")]:
            self._hand_over(path)
        return f"cloned {commit}"

    def _set_up_python(self, version: str) -> str:
        """A virtual environment of that Python, first in the path: ``python`` and ``pip`` are its."""
        given = dict(text.partition("=")[::2] for text in self._session.options.python)
        found = given.get(version) or shutil.which(f"python{version}", path=self._path)
        if found is None:
            raise RefusedError(f"there is no python{version}: --python {version}=PATH")
        folder = self._work / "tools" / f"python{version}"
        env = {"PATH": self._path, "HOME": str(self._work / "home")}
        status = self._wait([found, "-m", "venv", str(folder)], env=env, root=False)
        self._path = f"{folder / 'bin'}:{self._path}"
        return f"{status}: {found} in a virtual environment"

    # --- Files ----------------------------------------------------------------------------------------

    def _made(self, name: str) -> Path:
        path = self._work / "temp" / name
        path.touch()
        self._hand_over(path)
        return path

    def _hand_over(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.lchown(path, self._session.user.pw_uid, self._session.user.pw_gid)


def _ends_within(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a child ends in that time; it is not reaped."""
    watched = os.pidfd_open(child.pid)
    try:
        return bool(select.select([watched], [], [], max(0.0, seconds))[0])
    finally:
        os.close(watched)


def _assignments(file: Path) -> dict[str, str]:
    """``NAME=VALUE`` lines, and values of several lines between two words."""
    found: dict[str, str] = {}
    lines = iter(file.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if several := re.fullmatch(r"([^=]+)<<(\S+)", line):
            value = itertools.takewhile(lambda each, end=several[2]: each != end, lines)
            found[several[1]] = "\n".join(value)
        elif line:
            name, _, value = line.partition("=")
            found[name] = value
    return found


def _at(value: object, path: str) -> object:
    """What is at ``job.session`` of nested mappings, or ``None``."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _read(path: Path) -> dict[str, object]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key ``on`` as true.
    content["on"] = content.pop(True, content.get("on"))
    return content


def _contexts(options: argparse.Namespace, workflow: Mapping[str, object]) -> dict[str, object]:
    """``inputs`` with their defaults, ``github`` with what every run has, and what --set adds."""
    called = workflow["on"].get("workflow_call") if isinstance(workflow["on"], Mapping) else None
    declared = (called or {}).get("inputs", {})
    inputs = {name: each["default"] for name, each in declared.items() if "default" in each}
    inputs |= {"label": "here"} if "label" in declared else {}
    for text in options.input:
        name, _, value = text.partition("=")
        if name not in declared:
            raise RefusedError(f"there is no input {name!r}; there are {', '.join(declared)}")
        inputs[name] = value
    github = {"run_id": "1", "run_attempt": "1", "event_name": "push", "ref": "refs/heads/main"}
    contexts: dict[str, object] = {"inputs": inputs, "github": github}
    for text in options.set:
        path, _, value = text.partition("=")
        *parents, last = path.split(".")
        inner = contexts
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = json.loads(value) if value[:1] in {"{", "["} else value
    return contexts


def main() -> int:
    """Parse the command line, run the job, print the table."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=about)
    parser.add_argument("workflow", help="a file of .github/workflows")
    parser.add_argument("job")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--matrix", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--set", action="append", default=[], metavar="github.ref=VALUE")
    parser.add_argument("--python", action="append", default=[], metavar="3.14=PATH")
    parser.add_argument("--path", action="append", default=[], metavar="DIR", help="more of PATH")
    parser.add_argument("--without-sudo", action="store_true")
    parser.add_argument("--user", default="nobody", help="who runs the steps when root starts this")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()
    user = pwd.getpwnam(options.user) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    try:
        workflow = _read(options.root / ".github" / "workflows" / options.workflow)
        session = Session(options, workflow, _contexts(options, workflow), user)
        succeeded = session.run(options.job)
    except (RefusedError, CannotEvaluateError) as error:
        print(f"cannot run {options.workflow} {options.job}: {error}", file=sys.stderr)
        return 2
    print(f"\n{shlex.join([options.workflow, options.job])}:")
    for step in session.done:
        print(f"{step.seconds:7.1f} s  {step.job}: {step.name}: {step.status}")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
