"""Compose files: what is read, and every mistake with file, service and key."""

import pytest

from harness_core.base.errors import BadInput
from harness_core.system.compose import read_compose
from harness_core.system.parts import Condition

GOOD = """\
services:
  web:
    image: ${WEB_IMAGE:-web:1}
    command: [web, --serve]
    environment:
      DATABASE: postgresql://shop:shop@db:5432/shop
      PRICE: $$5
      WORKERS: 2
      FAULT:
    ports: ["127.0.0.1:8080:80", 9090]
    depends_on:
      db: { condition: service_healthy }
      seed: { condition: service_completed_successfully }
    x-harness: { command: ["{bin}/web", "--port", "{port}"], health: /health, ready_s: 5 }
  seed:
    build: .
    environment: [A=1, B=x=y]
    depends_on: [db]
    x-harness: { command: ["{bin}/seed", "{data}"] }
  db:
    image: postgres:17
    expose: ["5432"]
    x-harness: { service: postgres }
volumes: { data: {} }
"""


def write(folder, text):
    """The file."""
    path = folder / "compose.yaml"
    path.write_text(text)
    return path


def test_a_compose_file_is_read(tmp_path):
    """Ports, environment, conditions and recipes are what the file says."""
    compose = read_compose(write(tmp_path, GOOD), variables={"FAULT": "lost-update"})

    web, seed, db = (compose.services[name] for name in ("web", "seed", "db"))
    assert (80, 9090) == web.ports
    assert {
        "DATABASE": "postgresql://shop:shop@db:5432/shop",
        "PRICE": "$5",
        "WORKERS": "2",
        "FAULT": "lost-update",
    } == web.environment
    assert {"db": Condition.HEALTHY, "seed": Condition.COMPLETED} == web.depends_on
    assert ("web:1", False) == (web.image, web.built)
    assert ("/app/web", "--port", "4000") == web.recipe.argv(bin="/app", port=4000)
    assert ("/health", 5.0) == (web.recipe.health, web.recipe.ready_s)
    assert (True, {"A": "1", "B": "x=y"}) == (seed.one_shot, seed.environment)
    assert {"db": Condition.STARTED} == seed.depends_on
    assert ("postgres", 5432, False) == (db.recipe.service, db.port, db.one_shot)
    assert (db,) == compose.of_kind("postgres")


def test_a_variable_nobody_set_is_not_passed_on(tmp_path):
    """``NAME:`` without a value passes on what the caller has, and nothing else."""
    compose = read_compose(write(tmp_path, GOOD))

    assert "FAULT" not in compose.services["web"].environment


MISTAKES = {
    "no-yaml": ("services:\n  web: [", "", "", "compose.yaml:"),
    "twice": (GOOD.replace("  seed:\n", "  web:\n", 1), "", "", "the key 'web' is there twice"),
    "not-a-mapping": ("- web\n", "", "", "a mapping with the key services"),
    "no-services": ("services: {}\n", "", "services", "a mapping of services"),
    "unknown-dependency": ("db: { cond", "dbx: { cond", "services.web.depends_on", "mean db?"),
    "cycle": (
        "expose:",
        "depends_on: [web]\n    expose:",
        "services.web.depends_on",
        "no circle",
    ),
    "self": ("expose:", "depends_on: [db]\n    expose:", "services.db.depends_on", "'db -> db'"),
    "condition": (
        "service_healthy",
        "service_well",
        "services.web.depends_on.db.condition",
        "one of service_started",
    ),
    "one-shot-awaited-as-a-server": (
        "{ service: postgres }",
        "{ service: postgres }\n  late:\n    depends_on: [seed]\n    x-harness: { command: [x] }",
        "services.late.depends_on.seed.condition",
        "seed runs once and ends",
    ),
    "no-recipe": (
        "x-harness: { service: postgres }",
        "",
        "services.db.x-harness",
        "how to run it without a container",
    ),
    "two-recipes": (
        "{ service: postgres }",
        "{ service: postgres, command: [x] }",
        "services.db.x-harness",
        "either command or service",
    ),
    "field": ("{bin}/web", "{bon}/web", "services.web.x-harness.command", "{bin}, {data}"),
    "port-without-a-port": (
        '"{data}"',
        '"{port}"',
        "services.seed.x-harness.command",
        "ports or expose",
    ),
    "health": ("/health", "health", "services.web.x-harness.health", "a path"),
    "bucket-of-a-process": (
        "health: /health",
        "bucket: x",
        "services.web.x-harness.bucket",
        "a service: s3",
    ),
    "port": ('["5432"]', '["54 32"]', "services.db.expose[0]", "PORT, of TCP"),
    "udp": ('["5432"]', '["5432/udp"]', "services.db.expose[0]", "PORT, of TCP"),
    "port-range": ('["5432"]', '["70000"]', "services.db.expose[0]", "1 to 65535"),
    "port-twice": ("9090]", '"81:80"]', "services.web.ports[1]", "each port once"),
    "boolean": ("WORKERS: 2", "WORKERS: yes", "services.web.environment.WORKERS", "in quotes"),
    "environment-twice": ("B=x=y", "A=2", "services.seed.environment.A", "a name, once"),
    "dollar": ("$$5", "$5", "services.web.environment.PRICE", "$$ for a dollar"),
    "demanded": ("$$5", "${P:?set P}", "services.web.environment.PRICE", "set P"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_error_that_names_file_service_and_key(name, tmp_path):
    """What is wrong is said once, with the place and what would have been right."""
    first, second, key, says = MISTAKES[name]
    text = GOOD.replace(first, second, 1) if second or first in GOOD else first
    assert text != GOOD
    path = write(tmp_path, text)

    with pytest.raises(BadInput) as error:
        read_compose(path)

    assert key == error.value.key
    assert str(path) in str(error.value)
    assert says in str(error.value)
