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
nox -s examples                     small projects of strangers, from a wheel, each in its environment
nox -t pythons                      the examples on each Python that is supported and here
nox -s survey -- daemon --subject A.toml --subject B.toml   contracts x products, in one table
nox -s staging -- e2e --ui          boot what a suite tests and hold it (a page; harness ps, logs, down)
nox -s docs                         build docs/ as a site, strictly, and run its code
nox -t fast                         the sessions that need nothing but Python and seconds

Suites are not listed here: each suites/<name>/suite.toml declares its own sessions (docs/reference/suite-toml.md).
Environments live in .nox/ and are rebuilt when pyproject.toml changes; uv builds them when it is there.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"

ROOT = Path(__file__).resolve().parent
if (ROOT / "harness_core").is_dir():  # nox needs no harness installed beside it
    sys.path.insert(0, str(ROOT))

from harness_core import sessions

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
    "valkey",
    "nats",
    "mutation",
    "dask",
    "explore",
    "report",
    "ui",
]

EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/pyproject.toml"))

#: Those that are supported; which are not on this machine is said.
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

#: Benchmarks of the harness itself; a suite's has another name.
BENCHES = ["containers", "imports", "postgres", "strangers"]

CORE = {
    "paths": ["harness_core/tests"],
    "markers": "not docker and not checkers and not slow",
    "options": ["-n", "2"],
}
CORE_REST = CORE | {"markers": "not docker and not checkers and slow"}
TREE = sessions.read_tree(
    ROOT, own={"core": CORE, "core_rest": CORE_REST}, extras=EXTRAS, benches=BENCHES
)


@nox.session(tags=["fast", "static"])
def lint(session):
    """Ruff, import-linter, the harness's own lint (black box, imports, suite files), the workflows."""
    # The extras whose files docs/ describes (decision 0152).
    sessions.install(TREE, session, extras=["gateway", "mutation", "stack"], groups=["lint"])
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    # Reference systems are products: formatted as they like, held to a basic set of rules.
    basic = ["--isolated", "--select=E4,E7,E9,F,B,UP", "--target-version=py311"]
    for pattern in (
        "benchmarks/strangers",
        "examples",
        "suites/*/foreign",
        "suites/*/reference-system",
        "roster",
    ):
        for folder in ROOT.glob(pattern):
            session.run("ruff", "check", *basic, str(folder))
    session.run("lint-imports")
    session.run("harness", "lint")
    if (ROOT / ".github" / "workflows").is_dir():
        session.run("zizmor", "--offline", "--quiet", ".github")
        session.run("jactionlint", "--profile=correctness", "--no-online")


@nox.session(tags=["fast", "static"])
def types(session):
    """Mypy, strict, on harness_core; mypy and pyright on a project that uses its fixtures."""
    extras = TREE.pyproject["project"]["optional-dependencies"]
    sessions.install(TREE, session, extras=extras, groups=["types"])
    session.run("mypy", *session.posargs)
    if not session.posargs:
        session.run("pytest", "-q", "-m", "checkers", "harness_core/tests/fixtures")


@nox.session(tags=["static"])
def docs(session):
    """Build docs/ as a site, strictly (build/docs/index.html), and run its code (-- PAGE …: of these)."""
    sessions.install(TREE, session, extras=EXTRAS, groups=["docs"])
    strict = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    if not session.posargs:
        session.run("sphinx-build", *strict, "-d", "build/doctrees", "docs", "build/docs")
    pages = ["docs", "README.md", "CONTRIBUTING.md", *map(str, ROOT.glob("suites/*/README.md"))]
    words = session.posargs or [*pages, f"--junitxml={ROOT}/.evidence/reports/docs.xml"]
    session.run(
        *("python", "-m", "pytest", "--noconftest"),
        *("-p", "no:harness", "-p", "docs.run_blocks"),
        *words,
    )


@nox.session(tags=["tests"])
def core(session):
    """Tests of harness_core itself; with -- --services NAME, its service tests on such servers."""
    sessions.install(TREE, session, extras=EXTRAS, groups=["core"])
    services = sessions.option(session.posargs, "--services") or "local"
    markers = {"local": CORE["markers"], "container": "docker or services", "external": "services"}
    words = sessions.pytest_words(
        TREE,
        session,
        paths=CORE["paths"],
        # A provider that there is not: pytest says so.
        markers=markers.get(services, ""),
        options=CORE["options"] if services == "local" else [],
    )
    sessions.pytest(session, words)


@nox.session(default=False, tags=["nightly", "tests"])
def core_rest(session):
    """What of the harness's own tests takes seconds each: campaigns, hanging faults, new trees."""
    sessions.install(TREE, session, extras=EXTRAS, groups=["core"])
    words = sessions.pytest_words(TREE, session, **CORE_REST)
    sessions.pytest(session, words)


@nox.session(default=False)
def screenshots(session):
    """Make the pictures of the README and of pages again (docs/pictures); needs a browser."""
    sessions.install(TREE, session, extras=EXTRAS, groups=["core"])
    session.run("python", "-m", "harness_core.tests.report.screenshots", "docs/pictures")


@nox.session(venv_backend="none")
def examples(session):
    """The examples, as strangers run them: from a wheel, with nothing of this tree (-- NAME …)."""
    chosen = [folder.name for folder in EXAMPLES if folder.name in session.posargs]
    rest = [arg for arg in session.posargs if arg not in chosen]
    for name in chosen or [folder.name for folder in EXAMPLES]:
        session.notify(f"examples-{name}", posargs=rest)


def example_session(folder):
    """Make the nox sessions that run one example, copied to where nothing of this tree is."""

    def run(session):
        with tempfile.TemporaryDirectory(prefix=f"{folder.name}-") as place:
            wheels, home = Path(place, "wheels"), Path(place, folder.name)
            left_out = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
            shutil.copytree(folder, home, ignore=left_out)
            uv = session.venv_backend == "uv"
            build = ["uv", "build", "--wheel", "--out-dir"]
            pip = ["python", "-m", "pip"]
            build = build if uv else [*pip, "wheel", "--no-deps", "--wheel-dir"]
            session.run_install(*build, str(wheels), str(ROOT), silent=True)
            what = ["--find-links", str(wheels), "-e", ".", "--group", "test"]
            session.chdir(home)
            session.run_install(*(["uv", "pip"] if uv else pip), "install", *what, silent=True)
            report = f"--junitxml={ROOT}/.evidence/reports/{session.name}.xml"
            evidence = f"--evidence={ROOT}/.evidence/{session.name}"
            session.run("pytest", "-n", "4", report, evidence, *session.posargs)

    run.__doc__ = f"The example {folder.name} alone, by pytest -n 4."
    name = f"examples-{folder.name}"
    nox.session(run, name=name, tags=["examples", "tests"], default=False, reuse_venv=False)
    also = {"name": f"pythons-{folder.name}", "python": PYTHONS, "tags": ["pythons"]}
    nox.session(run, **also, default=False, reuse_venv=False)


@nox.session(default=False, tags=["docker", "tests"])
def core_containers(session):
    """Tests of harness_core against a container engine: core -- --services container."""
    sessions.install(TREE, session, extras=EXTRAS, groups=["core"])
    words = sessions.pytest_words(
        TREE,
        session,
        paths=CORE["paths"],
        markers="docker or services",
        options=["--services=container"],
    )
    sessions.pytest(session, words)


@nox.session(default=False, tags=["nightly"])
def bench(session):
    """Benchmarks, side by side with peers (-- NAME …; suites declare their own)."""
    rest = sessions.bench(TREE, session)
    if rest is not None:
        sessions.install(TREE, session, extras=EXTRAS, groups=["bench"])
        session.run("python", "-m", "benchmarks", *rest)


@nox.session(default=False)
def workflow(session):
    """Run the steps of a workflow's job here, in a clean clone (-- FILE JOB; --help says more)."""
    sessions.install(TREE, session, extras=["stack"])
    session.run("python", ".ci/steps.py", *session.posargs)


for each in EXAMPLES:
    example_session(each)
sessions.add_sessions(TREE)
