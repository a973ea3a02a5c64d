"""A new project is somebody else's: their command line or compose file, tested without a change to it."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness_core.assurance.requirements import check_tree
from harness_core.base.errors import BadInput
from harness_core.front.scaffold import scaffold_project
from harness_core.front.scaffold._guess import guess_recipes
from harness_core.system.subject import load_subject
from harness_core.system.suites import load_suites

COMPOSE = """\
services:
  web:
    build: .
    command: {python} -m http.server 8000
    ports: ["8000:8000"]
    depends_on: {{ once: {{ condition: service_completed_successfully }} }}
  once:
    build: .
    entrypoint: ["{python}", "-c"]
    command: ["print('ready')"]
"""


@pytest.fixture
def product(tmp_path):
    """The folder of a product."""
    (tmp_path / "compose.yaml").write_text(COMPOSE.format(python=sys.executable))
    return tmp_path


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one of our tools there."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.real
def test_a_command_line_is_tested(product):
    """It serves, and comes back after a kill; in the folder where the project was made."""
    argv = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    begun = scaffold_project("echo", parent=product, argv=argv)
    tests = run("pytest", "-q", "-p", "no:cacheprovider", cwd=begun.folder)
    subject = load_subject(begun.folder / "suites/echo/subject.toml")

    assert 0 == tests.returncode, tests.stdout
    assert "2 passed" in tests.stdout
    assert product.resolve() == subject.folder()


@pytest.mark.real
def test_a_command_that_ends_is_seen(product):
    """What does not serve turns the test red, with its last line."""
    argv = [sys.executable, "-c", "raise SystemExit('no such table')", "{port}"]
    begun = scaffold_project("echo", parent=product, argv=argv)
    tests = run("pytest", "-q", "-p", "no:cacheprovider", cwd=begun.folder)

    assert 0 != tests.returncode
    assert "no such table" in tests.stdout


@pytest.mark.real
def test_a_compose_file_is_tested_and_stays_as_it_is(product):
    """Its services run in their order, without containers, by recipes beside it."""
    before = (product / "compose.yaml").read_text()
    begun = scaffold_project("shop", parent=product, compose=product / "compose.yaml")
    tests = run("pytest", "-q", "-p", "no:cacheprovider", cwd=begun.folder)

    assert 0 == tests.returncode, tests.stdout
    assert "1 passed" in tests.stdout
    assert before == (product / "compose.yaml").read_text()
    assert product / "compose.harness.yaml" == begun.recipes
    assert () == begun.unknown


def test_recipes_that_are_there_stay(product):
    """Whoever has written them knows better."""
    recipes = product / "compose.harness.yaml"
    recipes.write_text("web: { command: [mine] }\n")
    begun = scaffold_project("shop", parent=product, compose=product / "compose.yaml")

    assert begun.recipes is None
    assert "web: { command: [mine] }\n" == recipes.read_text()


GUESSES = {
    "server": ({"image": "postgres:17"}, {"service": "postgres"}),
    "server-of-a-registry": ({"image": "quay.io/minio/minio"}, {"service": "s3"}),
    "another-server-of-the-protocol": (
        {"image": "redis:7-alpine", "expose": [6379]},
        {"service": "valkey"},
    ),
    "broker": ({"image": "nats:2.12"}, {"service": "nats"}),
    "command": (
        {"build": "app", "command": "gunicorn -b 0.0.0.0:80 app:app", "ports": ["8080:80"]},
        {"command": ["gunicorn", "-b", "{host}:{port}", "app:app"], "cwd": "app"},
    ),
    "entrypoint": (
        {"image": "x", "entrypoint": ["tini", "--"], "command": ["run", 5]},
        {"command": ["tini", "--", "run", "5"]},
    ),
    "long-port": (
        {"build": {"context": "."}, "command": "serve --port 90", "ports": [{"target": 90}]},
        {"command": ["serve", "--port", "{port}"], "cwd": "."},
    ),
    "a-longer-number-is-no-port": (
        {"build": ".", "command": "serve 8000 18000", "expose": ["8000"]},
        {"command": ["serve", "{port}", "18000"], "cwd": "."},
    ),
    "dockerfile": (
        {"build": "made", "ports": ["3000:3000"]},
        {"command": ["node", "app.js", "{port}"], "cwd": "made"},
    ),
    "host-of-another": (
        {"build": ".", "command": "run", "environment": {"DB_HOST": "db", "NAME": "db"}},
        {
            "command": ["run"],
            "cwd": ".",
            "environment": {"DB_HOST": "{db.host}", "DB_PORT": "{db.port}"},
        },
    ),
    "host-in-a-list": (
        {"image": "x", "command": "run", "environment": ["HOST=db", "A=it", "B"]},
        {"command": ["run"], "environment": {"HOST": "{db.host}", "PORT": "{db.port}"}},
    ),
    "nothing-known": ({"image": "nginx"}, None),
}


@pytest.mark.parametrize("name", GUESSES)
def test_recipes_are_guessed_from_what_the_file_shows(name, tmp_path):
    """Servers by their image, programs by their command line, wherever that stands."""
    (tmp_path / "made").mkdir()
    text = 'FROM node\nENTRYPOINT ["node"]\nCMD ["old"]\nCMD ["app.js", \\\n "3000"]\n'
    (tmp_path / "made/Dockerfile").write_text(text)
    body, recipe = GUESSES[name]

    assert recipe == guess_recipes({"it": body, "db": {}}, folder=tmp_path)["it"]


def test_what_the_product_asks_for_is_installed_for_its_tests(product):
    """The plain lines of its requirements.txt are a group of the new project."""
    text = "# ours\nflask>=3 # the web\n-r more.txt\npsycopg[binary]; python_version > '3'\n\n"
    (product / "requirements.txt").write_text(text)
    begun = scaffold_project("shop", parent=product, compose=product / "compose.yaml")
    groups = tomllib.loads((begun.folder / "pyproject.toml").read_text())["dependency-groups"]

    assert ["flask>=3", "psycopg[binary]; python_version > '3'"] == groups["product"]
    assert {"include-group": "product"} in groups["test"]


def test_what_is_not_known_is_named(product):
    """A service of an image whose command nobody shows stands in the file as a comment."""
    text = COMPOSE.format(python=sys.executable) + "  front: { image: nginx }\n"
    (product / "compose.yaml").write_text(text)
    begun = scaffold_project("shop", parent=product, compose=product / "compose.yaml")

    assert ("front",) == begun.unknown
    assert "\n# front: " in begun.recipes.read_text()


def test_a_distribution_gets_an_environment_of_its_own(product):
    """A python that runs a product which can be installed is the one it is installed for."""
    text = "[build-system]\nrequires = []\n[project]\nname = 'shop'\n"
    (product / "pyproject.toml").write_text(text)
    begun = scaffold_project("shop", parent=product, argv=["python", "-m", "shop", "{port}"])
    subject = load_subject(begun.folder / "suites/shop/subject.toml")

    assert "{bin}/python" == subject.argv[0]
    assert product.resolve() == subject.project


@pytest.mark.parametrize("kind", ["command", "compose", "counter"])
@pytest.mark.parametrize("name", ["shop", "a" * 30])
def test_a_project_pleases_every_lint_and_is_in_its_front_door(product, name, kind):
    """Ruff, the harness's own lint and nox have nothing to say."""
    given = {
        "command": {"argv": ["serve", "{port}"]},
        "compose": {"compose": product / "compose.yaml"},
        "counter": {},
    }
    folder = scaffold_project(name, parent=product, **given[kind]).folder
    (suite,) = load_suites(folder)
    basic = ["--isolated", "--select=E4,E7,E9,F,B,UP"]
    ruff = run("ruff", "check", *basic, ".", cwd=folder)
    formatted = run("ruff", "format", "--isolated", "--line-length=100", "--check", ".", cwd=folder)
    # Where there is no uv nox says so first.
    listed = json.loads(run("nox", "-l", "--json", cwd=folder).stdout.splitlines()[-1])

    assert name == suite.name
    assert () == check_tree(folder)
    assert 0 == ruff.returncode, ruff.stdout
    assert 0 == formatted.returncode, formatted.stdout
    assert {"lint", name} <= {row["session"] for row in listed}
    assert "dependency-groups" in tomllib.loads((folder / "pyproject.toml").read_text())
    assert [] == [path for path in folder.rglob("*") if "@" in path.name or ".tmpl" in path.name]


REFUSED = {
    "name": ("Shop", {}, "2 to 30 lower case letters"),
    "taken": ("taken", {}, "a name that is not there yet"),
    "no-compose": ("shop", {"compose": "empty.yaml"}, "a mapping of services"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_one_error_and_writes_nothing(product, case):
    """The folder is as it was."""
    (product / "taken").mkdir()
    (product / "empty.yaml").write_text("name: shop\n")
    name, given, expected = REFUSED[case]
    before = sorted(product.rglob("*"))

    with pytest.raises(BadInput) as caught:
        scaffold_project(
            name, parent=product, **{key: product / value for key, value in given.items()}
        )

    assert expected in caught.value.expected
    assert before == sorted(product.rglob("*"))
