"""Recipes in a file beside the compose file, which stays as its owner wrote it."""

import os
import sys
from pathlib import Path

import pytest

from harness_core.base.errors import BadInput
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack, read_compose

#: As somebody writes it who has never heard of the harness.
THEIRS = """\
services:
  web:
    build: .
    command: web --serve
    environment:
      DATABASE_HOST: db
      DATABASE_PORT: "5432"
      SELF: http://web:8000
    ports: ["8000:8000"]
    depends_on: [db]
    logging: { driver: json-file }
    deploy: { resources: { limits: { memory: 1g } } }
    stdin_open: true
    tty: true
  db:
    image: postgres:17
    environment: { POSTGRES_PASSWORD: secret }
"""

OURS = """\
web:
  command: ["{bin}/web", "--port", "{port}"]
  environment: { DATABASE_HOST: "{db.host}", DATABASE_PORT: "{db.port}", HOME: "{data}" }
db: { service: postgres }
"""


@pytest.fixture
def compose(tmp_path):
    """Their file, and ours beside it."""
    (tmp_path / "docker-compose.yml").write_text(THEIRS)
    (tmp_path / "docker-compose.harness.yml").write_text(OURS)
    return tmp_path / "docker-compose.yml"


def test_recipes_beside_the_file_are_those_of_its_services(compose):
    """As if they stood in it; what the file says stays what it says."""
    web, db = read_compose(compose).services.values()

    assert ("/app/web", "--port", "4000") == web.recipe.argv(bin="/app", port=4000)
    assert "postgres" == db.recipe.service
    assert "db" == web.environment["DATABASE_HOST"]
    assert web.names("db"), "{db.port} says that web needs to know where db is"
    assert {
        "DATABASE_HOST": "127.0.0.1",
        "DATABASE_PORT": "5555",
        "HOME": "/d",
    } == web.recipe.variables(lambda _: "127.0.0.1:5555", data="/d")


MISTAKES = {
    "no-such-service": ("db: {", "bd: {", "bd", "a service of docker-compose.yml: web, db"),
    "no-recipe": ("service: postgres", "service: postgras", "db.service", "one of gateway"),
    "field": ('"{data}"', '"{dota}"', "web.environment.HOME", "one of {bin}"),
    "environment-of-a-server": (
        "{ service: postgres }",
        "{ service: postgres, environment: { A: b } }",
        "db",
        "with a command alone",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_the_file_beside(name, compose):
    """One error with our file, the service and the key."""
    ours = compose.with_name("docker-compose.harness.yml")
    first, second, key, says = MISTAKES[name]
    ours.write_text(OURS.replace(first, second))

    with pytest.raises(BadInput) as caught:
        read_compose(compose)

    assert (str(ours), key) == (caught.value.where, caught.value.key)
    assert says in caught.value.expected


def test_a_recipe_stands_in_one_place(compose):
    """A service with a recipe in both files is refused."""
    compose.write_text(THEIRS + "    x-harness: { service: postgres }\n")

    with pytest.raises(BadInput, match=r"db: .*has one in docker-compose\.yml"):
        read_compose(compose)


SERVER = """
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen = {name: os.environ.get(name) for name in ("DATABASE_HOST", "DATABASE_PORT", "SELF")}
        body = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""


@pytest.mark.real
async def test_it_runs_without_containers(compose, tmp_path, evidence):
    """Host and port of another service are where it is in truth, also taken apart."""
    command = tmp_path / "web"
    command.write_text(f"#!{sys.executable}\n{SERVER}")
    command.chmod(0o755)
    before = compose.read_text()
    options = StackOptions(bin=str(tmp_path), environment={"PATH": os.environ["PATH"]})
    async with (
        open_run(evidence=evidence) as run,
        open_stack(run, compose, evidence=evidence, options=options) as stack,
    ):
        seen = (await stack.client("web").get("/")).json()
        host, _, port = stack.address("db").rpartition(":")
        web = stack.url("web")
        rows = await stack.rows("select 1 as one")

    assert {"DATABASE_HOST": host, "DATABASE_PORT": port, "SELF": web} == seen
    assert [{"one": 1}] == rows
    assert before == Path(compose).read_text()
