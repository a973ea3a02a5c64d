"""The staging harness: what a contributor runs, and what CI runs.

nox                                 everything that must pass before a merge (the * sessions)
nox -s e2e                          one suite; everything after -- goes to pytest:
nox -s e2e -- -k ingest -x          ... the tests named so, up to the first failure
nox -s e2e -- --subject my.toml     ... on a product of yours instead of the reference system
nox -s soak -- daemon               50,000 frames at the socket daemon, numbers at the end
nox -s explore -- daemon            drive its product by generated steps, for half a minute
nox -s mutate -- e2e --sample 20    change its product in 20 small ways: what do its tests notice?
nox -s coverage                     what all tests execute of the harness (-- e2e: of that product)
nox -s faults -- e2e                plant the faults of a suite, each must turn its tests red
nox -s e2e -- --services container  ... with its servers in containers (nox -t docker: all such)
nox -s survey -- daemon --subject A.toml --subject B.toml   contracts x products, in one table
nox -s staging -- e2e               boot what a suite tests and hold it (harness ps, logs, down)
nox -t fast                         the sessions that need nothing but Python and seconds

Suites are not listed here: each suites/<name>/suite.toml declares its own sessions (docs/suite-toml.md).
Environments live in .nox/ and are rebuilt when pyproject.toml changes; uv builds them when it is there.
"""

import hashlib
import os
import sys
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
nox.options.reuse_venv = "yes"

# Without bytecode every process of every run compiles a thousand modules again; pip makes it anyway.
os.environ.setdefault("UV_COMPILE_BYTECODE", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).resolve().parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
REPORTS = ROOT / ".evidence" / "reports"

#: What the harness's own tests and benchmarks use of it.
EXTRAS = [
    "postgres",
    "asyncpg",
    "gateway",
    "containers",
    "mail",
    "telemetry",
    "s3",
    "stack",
    "temporal",
    "mutation",
    "dask",
    "explore",
]

#: Benchmarks of the harness itself; a suite's has another name.
BENCHES = ["containers", "postgres"]


@nox.session(tags=["fast", "static"])
def lint(session):
    """Ruff, import-linter, the harness's own lint (black box, imports, suite files), the workflows."""
    install(session, groups=["lint"])
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    # Reference systems are products: formatted as they like, held to a basic set of rules.
    basic = ["--isolated", "--select=E4,E7,E9,F,B,UP", "--target-version=py311"]
    for folder in products():
        session.run("ruff", "check", *basic, str(folder))
    session.run("lint-imports")
    session.run("harness", "lint")
    if (ROOT / ".github" / "workflows").is_dir():
        session.run("zizmor", "--offline", "--quiet", ".github")
        session.run("jactionlint", "--profile=correctness", "--no-online")


@nox.session(tags=["fast", "static"])
def types(session):
    """Mypy, strict, on harness_core."""
    install(session, extras=PYPROJECT["project"]["optional-dependencies"], groups=["types"])
    session.run("mypy", *session.posargs)


@nox.session(tags=["tests"])
def core(session):
    """Tests of harness_core itself; with -- --services NAME, its service tests on such servers."""
    install(session, extras=EXTRAS, groups=["core"])
    services = option(session.posargs, "--services") or "local"
    markers = {"local": "not docker", "container": "docker or services", "external": "services"}
    words = pytest_words(
        session,
        paths=["harness_core/tests"],
        # A provider that there is not: pytest says so.
        markers=markers.get(services, ""),
        options=["-n", "2"] if services == "local" else [],
    )
    pytest(session, words)


@nox.session(default=False, tags=["docker", "tests"])
def core_containers(session):
    """Tests of harness_core against a container engine: core -- --services container."""
    install(session, extras=EXTRAS, groups=["core"])
    words = pytest_words(
        session,
        paths=["harness_core/tests"],
        markers="docker or services",
        options=["--services=container"],
    )
    pytest(session, words)


@nox.session(venv_backend="none")
def explore(session):
    """Drive the products by generated steps, half a minute each (-- SUITE --seconds N --seed N)."""
    named = [suite["name"] for suite in SUITES if suite["name"] in session.posargs]
    exploring = [suite["name"] for suite in SUITES if suite["explores"]]
    for name in named:
        if name not in exploring:
            known = ", ".join(exploring) or "no suite"
            session.error(f"no test of {name} is marked explore; of {known} some are")
    rest = [arg for arg in session.posargs if arg not in named]
    for name in named or exploring:
        session.notify(f"explore-{name}", posargs=rest)


@nox.session(default=False, venv_backend="none")
def faults(session):
    """Plant faults in the reference systems: each must turn its named tests red (-- SUITE [FAULT])."""
    planted = {suite["name"]: suite for suite in SUITES if "faults" in suite}
    chosen = [name for name in session.posargs if name in planted]
    rest = [arg for arg in session.posargs if arg not in planted]
    for name in chosen or planted:
        session.notify(f"faults-{name}", posargs=rest)


@nox.session(default=False, venv_backend="none")
def mutate(session):
    """Change a product in small ways: do the tests of its suite notice? (-- SUITE --sample N …)."""
    chosen = [suite["name"] for suite in SUITES if suite["name"] in session.posargs[:1]]
    if not chosen:
        session.error(f"name a suite: {', '.join(suite['name'] for suite in SUITES)}")
    session.notify(f"mutate-{chosen[0]}", posargs=session.posargs[1:])


@nox.session(default=False, tags=["nightly"])
def bench(session):
    """Benchmarks, side by side with peers (-- NAME …; suites declare their own)."""
    owners = {row["name"]: suite["name"] for suite in SUITES for row in suite.get("bench", [])}
    chosen = [name for name in session.posargs if name in owners]
    rest = [arg for arg in session.posargs if arg not in owners]
    for name in chosen or ([] if rest else owners):
        session.notify(f"bench-{owners[name]}", posargs=chosen or [])
    if chosen and not rest:
        return
    install(session, extras=EXTRAS, groups=["bench"])
    session.run("python", "-m", "benchmarks", *rest)


@nox.session(default=False)
def staging(session):
    """Boot what a suite tests and hold it until Ctrl-C or `harness down` (-- SUITE --subject FILE)."""
    bootable = {suite["name"]: suite for suite in SUITES if "environment" in suite}
    if not bootable:
        session.error("no suite.toml names an environment")
    named = [arg for arg in session.posargs if arg in bootable]
    if not named:
        named = sorted(bootable)[:1]
        session.log(f"staging {named[0]}; all that can be: {', '.join(sorted(bootable))}")
    suite = bootable[named[0]]
    install(session, extras=suite.get("extras", []), groups=[suite["group"]])
    rest = [arg for arg in session.posargs if arg != suite["name"]]
    # Ctrl-C reaches both processes: nox must wait until the environment is down.
    session.run(
        *("harness", "up", suite["name"], *rest),
        env=subject_env(session, suite),
        interrupt_timeout=90,
        terminate_timeout=90,
    )


@nox.session(default=False)
def survey(session):
    """Run a suite on several products, print contract x product (-- SUITE --subject FILE …)."""
    named = [suite for suite in SUITES if suite["name"] in session.posargs[:1]]
    if not named:
        session.error(f"name a suite: {', '.join(suite['name'] for suite in SUITES)}")
    [suite] = named
    groups = {suite["group"], *(row.get("group") or suite["group"] for row in suite["sessions"])}
    install(session, **needs_of(session, suite) | {"groups": sorted(groups)})
    session.run("harness", "survey", *session.posargs, env=reference_env(session, suite))


@nox.session(default=False, tags=["nightly"])
def coverage(session):
    """What all tests execute of harness_core and the suites, with a floor; -- SUITE: of its product."""
    named = [suite["name"] for suite in SUITES if suite["name"] in session.posargs[:1]]
    if named:
        session.notify(f"mutate-{named[0]}", posargs=["coverage", *session.posargs[1:]])
        return
    rows = measured_rows()
    only = [name for name in session.posargs if name in rows]
    needs = [needs_of(session, suite) for suite, _ in rows.values() if suite]
    install(
        session,
        extras=sorted({*EXTRAS, *(extra for each in needs for extra in each["extras"])}),
        groups=sorted({"coverage", *(group for each in needs for group in each["groups"])}),
        libraries=sorted({each for need in needs for each in need["libraries"]}),
    )
    session.run("coverage", "erase")
    for name in only or rows:
        suite, row = rows[name]
        words = pytest_words(
            session,
            paths=row["paths"],
            markers=row.get("markers", ""),
            options=row.get("options", []),
            args=[],
        )
        # What fails here fails in its own session too; this one measures.
        session.run(
            *("coverage", "run", f"--context={name}", "-m", "pytest", *words),
            env={
                "HARNESS_SESSION": name,
                # Tests that start a pytest of their own expect its order too.
                "PYTEST_ADDOPTS": "-p no:randomly",
                **(subject_env(session, suite) if suite else {}),
            },
            success_codes=[0, 1, 6],
        )
    session.run("coverage", "combine", "-q")
    session.run("coverage", "report", *(["--fail-under=0"] if only else []))


def measured_rows():
    """The sessions that count for coverage, by name: those of bare nox, and those tagged measured."""
    core = {"paths": ["harness_core/tests"], "markers": "not docker", "options": ["-n", "2"]}
    rows = {"core": (None, core)}
    for suite in SUITES:
        for row in suite["sessions"]:
            counts = row.get("default") or "measured" in row.get("tags", [])
            if counts and not row.get("own_tests"):
                paths = [f"suites/{suite['name']}/{path}" for path in row.get("paths", ["."])]
                rows[row["name"]] = (suite, row | {"paths": paths})
    return rows


@nox.session(default=False)
def workflow(session):
    """Run the steps of a workflow's job here, in a clean clone (-- FILE JOB; --help says more)."""
    install(session, extras=["stack"])
    session.run("python", ".ci/steps.py", *session.posargs)


# --- Sessions of the suites -------------------------------------------------------------------------


def suite_session(suite, row):
    """Make the nox session that one [[session]] of a suite.toml declares."""
    own = row.get("own_tests", False)

    def run(session):
        needs = needs_of(session, suite)
        install(session, **{} if own else needs | {"groups": [row.get("group", suite["group"])]})
        options = row.get("options", [])
        env = subject_env(session, suite, options=options)
        words = pytest_words(
            session,
            paths=[str(Path("suites", suite["name"], path)) for path in row.get("paths", ["."])],
            markers=row.get("markers", ""),
            options=options,
            # `nox -s soak -- daemon` names the suite as `nox -s faults -- daemon` does.
            args=session.posargs[session.posargs[:1] == [suite["name"]] :],
        )
        if not own:
            pytest(session, words, env=env)
        elif subject_given(session, options):
            session.error("these are the reference system's own tests; they take no --subject")
        elif env:
            python = str(Path(env["HARNESS_SUBJECT_BIN"], "python"))
            session.run(python, "-m", "pytest", *words, external=True)

    run.__doc__ = row["summary"]
    # With this tag a session is given options of the harness's own.
    tags = [*row.get("tags", []), *([] if own else ["tests"])]
    nox.session(run, name=row["name"], tags=tags, default=row.get("default", False))


def faults_session(suite):
    """Make the nox session that plants the faults of one suite."""

    def run(session):
        # Faults name tests of every session, so what any of them needs must be there.
        groups = sorted(
            {suite["group"], *(row.get("group") or suite["group"] for row in suite["sessions"])}
        )
        install(session, **needs_of(session, suite) | {"groups": groups})
        env = subject_env(session, suite)
        session.run("harness", "faults", suite["name"], *session.posargs, env=env)

    run.__doc__ = f"Planted faults of {suite['name']} alone."
    nox.session(run, name=f"faults-{suite['name']}", tags=["faults", "nightly"], default=False)


def explore_session(suite):
    """Make the nox session that runs the tests of one suite that are marked ``explore``."""

    def run(session):
        install(session, **needs_of(session, suite))
        env = subject_env(session, suite)
        ours = {"--seconds": "--explore-seconds", "--seed": "--explore-seed"}
        args = []
        for arg in session.posargs:
            name, equals, value = arg.partition("=")
            args.append(ours.get(name, name) + equals + value)
        words = pytest_words(
            session, paths=[str(Path("suites", suite["name"]))], markers="explore", args=args
        )
        pytest(session, words, env=env)

    run.__doc__ = f"Generated steps against the product of {suite['name']} alone."
    nox.session(run, name=f"explore-{suite['name']}", tags=["explore"], default=False)


def explores(folder):
    """Whether a test of a suite is marked ``explore``."""
    return any(
        "mark.explore" in path.read_text(encoding="utf-8")
        for path in folder.glob("**/*.py")
        if "reference-system" not in path.parts
    )


def mutate_session(suite):
    """Make the nox session that mutates the product of one suite, or measures its coverage."""

    def run(session):
        needs = needs_of(session, suite)
        groups = {
            suite["group"],
            *(row.get("group") or suite["group"] for row in suite["sessions"]),
        }
        extras = [*needs["extras"], "mutation", "dask"]
        install(session, **needs | {"groups": sorted(groups), "extras": extras})
        env = subject_env(session, suite)
        words = session.posargs
        action, words = ("coverage", words[1:]) if words[:1] == ["coverage"] else ("run", words)
        # This environment is made for nothing else: processes of a library may have the agent.
        here = ["--here"] if suite.get("library") and "subject" not in suite else []
        session.run("harness", "mutate", action, suite["name"], *here, *words, env=env)

    run.__doc__ = f"Mutants of the product of {suite['name']}, and its coverage."
    nox.session(run, name=f"mutate-{suite['name']}", tags=["mutants"], default=False)


def bench_session(suite):
    """Make the nox session that runs the benchmarks of one suite."""

    def run(session):
        install(session, **needs_of(session, suite))
        env = subject_env(session, suite)
        rows = {row["name"]: row for row in suite["bench"]}
        for name in session.posargs or rows:
            module = Path("suites", suite["name"], rows[name]["script"]).with_suffix("")
            session.run("python", "-m", ".".join(module.parts), env=env)

    run.__doc__ = f"Benchmarks of {suite['name']} alone."
    nox.session(run, name=f"bench-{suite['name']}", tags=["bench"], default=False)


#: What this file needs of a suite.toml; `harness lint` checks the rest.
SUITE = {"group": str, "extras": list, "library": str, "subject": str}
SESSION = {"name": str, "summary": str, "default": bool, "group": str, "markers": str}
SESSION |= {"options": list, "own_tests": bool, "paths": list, "tags": list}
BENCH = {"name": str, "script": str}


def read_suites():
    """Read every suites/<name>/suite.toml."""
    suites = []
    for path in sorted(ROOT.glob("suites/*/suite.toml")):
        file = path.relative_to(ROOT)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            sys.exit(f"cannot read {file}: {error}.")
        suite = take(content, "suite", dict, file=file)
        check_keys(suite, SUITE, required=["group"], file=file, at="suite.")
        suite["name"] = path.parent.name
        suite["sessions"] = take(content, "session", list, file=file)
        suite["bench"] = content.get("bench", [])
        suite["explores"] = explores(path.parent)
        for number, row in enumerate(suite["sessions"]):
            at = f"session[{number}]."
            check_keys(row, SESSION, required=["name", "summary"], file=file, at=at)
        for number, row in enumerate(suite["bench"]):
            check_keys(row, BENCH, required=["name", "script"], file=file, at=f"bench[{number}].")
        for group in {suite["group"], *(row.get("group") for row in suite["sessions"])} - {None}:
            if group not in PYPROJECT["dependency-groups"]:
                sys.exit(
                    f"cannot read {file}: group: found {group!r}, expected one of pyproject.toml."
                )
        suites.append(suite)
    check_names(suites)
    return suites


def check_keys(table, kinds, *, required, file, at):
    """Refuse a key that is missing, or a value of another kind."""
    if not isinstance(table, dict):
        sys.exit(f"cannot read {file}: {at}: found {table!r}, expected a table.")
    for key, kind in kinds.items():
        if key in table or key in required:
            take(table, key, kind, file=file, at=at)


def take(table, key, kind, *, file, at=""):
    """The value of a key that must be there."""
    found = table.get(key)
    if not isinstance(found, kind):
        sys.exit(
            f"cannot read {file}: {at}{key}: found {found!r}, expected a {kind.__name__}. "
            "See docs/suite-toml.md."
        )
    return found


def check_names(suites):
    """Refuse a name that is taken: nox would run the last of two and never report the first."""
    taken = {
        "session": dict.fromkeys(nox.registry.get(), "noxfile.py"),
        "bench": dict.fromkeys(BENCHES, "python -m benchmarks"),
    }
    for suite in suites:
        for prefix in ("faults", "bench", "mutate", "explore"):
            taken["session"][f"{prefix}-{suite['name']}"] = "noxfile.py"
    for suite in suites:
        file = f"suites/{suite['name']}/suite.toml"
        for kind, rows in (("session", suite["sessions"]), ("bench", suite["bench"])):
            for row in rows:
                if other := taken[kind].get(row["name"]):
                    sys.exit(
                        f"cannot read {file}: {kind}.name: found {row['name']!r}, expected a name "
                        f"that is not taken. {other} has this one."
                    )
                taken[kind][row["name"]] = file


# --- Environments -----------------------------------------------------------------------------------


def needs_of(session, suite):
    """What the tests of a suite need; a library under test unless --subject names another."""
    library = suite.get("library") if not subject_given(session) else None
    libraries = [ROOT / "suites" / suite["name"] / library] if library else []
    return {
        "extras": suite.get("extras", []),
        "groups": [suite["group"]],
        "libraries": libraries,
    }


def subject_given(session, options=()):
    """Whether this run tests something other than the reference system."""
    return any(arg.split("=")[0] == "--subject" for arg in [*options, *session.posargs])


def install(session, *, extras=(), groups=(), libraries=()):
    """Install harness_core and what the session needs, unless exactly that is installed already."""
    project = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    requirements = ["-e", project, *nox.project.dependency_groups(PYPROJECT, *groups)]
    contents = []
    for library in libraries:
        requirements += ["-e", str(library)]
        contents.append((library / "pyproject.toml").read_text())
    stamp = Path(session.virtualenv.location) / ".installed"
    wanted = fingerprint(ROOT / "pyproject.toml", *requirements, *contents)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    # None means that nox ran with an option against installing: the stamp stays what it was.
    if session.run_install(*installer(session, "python"), *requirements, silent=True) is not None:
        stamp.write_text(wanted)


def subject_env(session, suite, *, options=()):
    """See to it that the suite's reference system is installed; return where its commands are.

    A suite without a subject, or a run with --subject, needs no such environment.
    """
    return {} if subject_given(session, options) else reference_env(session, suite)


def reference_env(session, suite):
    """The same, whatever the run tests."""
    if "subject" not in suite:
        return {}
    into = Path(session.virtualenv.location).parent
    command = ["harness", "reference", suite["name"], "--into", str(into)]
    uv = {"UV": nox.virtualenv.UV} if session.venv_backend == "uv" else {}
    printed = session.run_install(*command, env=uv, silent=True)
    if printed is None:  # nox -R installs nothing
        printed = session.run(*command, "--as-it-is", silent=True)
    if not printed:  # nor does it run anything with --install-only
        return {}
    *notes, commands = printed.splitlines()
    for note in notes:
        session.log(note)
    return {"HARNESS_SUBJECT_BIN": commands}


def installer(session, python):
    """The command that installs into the environment of ``python``."""
    uv = ["uv", "pip", "install", "--python", python]
    return uv if session.venv_backend == "uv" else [python, "-m", "pip", "install"]


def fingerprint(pyproject, *more):
    """What an environment was built from, in one word."""
    return hashlib.sha256("\n".join([pyproject.read_text(), *more]).encode()).hexdigest()


# --- pytest -----------------------------------------------------------------------------------------


def pytest(session, words, *, env=None):
    """Run pytest."""
    # A debugger needs the terminal that workers do not have, and they do not list what they collect.
    if {"--pdb", "--trace", "--co", "--collect-only"} & set(words):
        words.append("-n0")
    session.run("pytest", *words, env={"HARNESS_SESSION": session.name} | (env or {}))


def pytest_words(session, *, paths, markers="", options=(), args=None):
    """Arguments of pytest for the paths, or those named after --, and a machine-readable report."""
    args = list(session.posargs if args is None else args)
    if any(is_test_path(arg) for arg in args):
        paths = []
    # The last -m would win over an earlier one: join both instead.
    while "-m" in args[:-1]:
        at = args.index("-m")
        markers = f"({markers}) and ({args[at + 1]})" if markers else args[at + 1]
        del args[at : at + 2]
    report = f"--junitxml={REPORTS / session.name}.xml"
    select = ["-m", markers] if markers else []
    return [*paths, *select, report, *options, *args]


def option(args, name):
    """The value of ``--name VALUE`` or ``--name=VALUE``, the last one, or None."""
    found = None
    for arg, following in zip(args, [*args, None][1:], strict=True):
        if arg == name:
            found = following
        elif arg.startswith(f"{name}="):
            found = arg.partition("=")[2]
    return found


def is_test_path(arg):
    """Whether an argument names tests: a folder or file of this tree, with or without ::test."""
    path = Path(arg.split("::")[0])
    return path.parts[:1] in {("suites",), ("harness_core",)} and (
        path.is_dir() or path.suffix == ".py"
    )


def products():
    """The folders that are tested rather than part of the harness: reference systems and the roster."""
    return [
        path
        for pattern in ("suites/*/foreign", "suites/*/reference-system", "roster")
        for path in ROOT.glob(pattern)
    ]


SUITES = read_suites()
for _suite in SUITES:
    for _row in _suite["sessions"]:
        suite_session(_suite, _row)
    if "faults" in _suite:
        faults_session(_suite)
    if _suite["explores"]:
        explore_session(_suite)
    mutate_session(_suite)
    if _suite["bench"]:
        bench_session(_suite)
