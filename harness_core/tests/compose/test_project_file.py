"""The file for compose: the user's file, with what is ours put in its place."""

import pytest

from harness_core.base.errors import BadInput
from harness_core.system.compose import read_compose
from harness_core.system.compose._project_file import Project, build_of

TEXT = """\
services:
  web:
    build: { context: ., dockerfile: Web }
    command: [web]
    cap_add: [SYS_ADMIN]
    restart: always
    networks: [inner]
    environment: { DATA: "{data}", PRICE: $$5, LLM: http://llm:8080 }
    ports: ["127.0.0.1::80", "9000"]
    volumes: ["shared:/shared:ro", "./here:/there"]
    healthcheck: { test: [CMD, x] }
    depends_on: [db]
    x-harness: { command: [x], health: /health }
  db:
    image: postgres:17
    ports: ["5432"]
    volumes: [{ type: volume, source: shared, target: /data }]
    environment: { WHERE: "{data}" }
    x-harness: { service: postgres }
  llm:
    image: x
    ports: ["8080"]
    x-harness: { service: gateway }
networks: { inner: {} }
volumes: { shared: {} }
"""


@pytest.fixture
def compose(tmp_path):
    """The file, read."""
    path = tmp_path / "compose.yaml"
    path.write_text(TEXT)
    return read_compose(path)


@pytest.fixture
def project(compose):
    """A project of it."""
    return Project(
        name="hs-1",
        compose=compose,
        images={"web": "web:built", "db": "pg:ours"},
        network="hs-1-network",
        hosts={"llm": "172.18.0.1"},
        ports={"web": 20001, "db": 20002},
        run_id="run-1",
    )


def test_what_is_ours_takes_the_place_of_the_users(project):
    """Image, name, labels, port, volumes, hosts; what we do ourselves is left out."""
    web = project.content()["services"]["web"]

    assert ("web:built", "hs-1-web") == (web["image"], web["container_name"])
    assert ["127.0.0.1:20001:80"] == web["ports"]
    assert {"disable": True} == web["healthcheck"]
    assert ["llm:172.18.0.1"] == web["extra_hosts"]
    assert "run-1" in web["labels"].values()
    assert not {"build", "depends_on", "networks", "restart", "x-harness"} & set(web)


def test_options_of_a_container_stay(project):
    """What only compose understands is passed on as it is."""
    web = project.content()["services"]["web"]

    assert (["web"], ["SYS_ADMIN"]) == (web["command"], web["cap_add"])


def test_volumes_are_made_by_us_and_data_has_one(project):
    """A named volume gets our name; a service that keeps data and mounts none there gets one."""
    content = project.content()
    web, db = content["services"]["web"], content["services"]["db"]

    assert [
        "hs-1-volume-shared:/shared:ro",
        "./here:/there",
        "hs-1-data-web:/data",
    ] == web["volumes"]
    assert [{"type": "volume", "source": "hs-1-volume-shared", "target": "/data"}] == db["volumes"]
    assert {"hs-1-volume-shared", "hs-1-data-web"} == set(content["volumes"])
    assert all(volume["external"] for volume in content["volumes"].values())


def test_values_are_filled_in_once(project):
    """``{data}`` is a place in the container; a dollar stays one when compose reads it again."""
    environment = project.content()["services"]["web"]["environment"]

    assert {"DATA": "/data", "PRICE": "$$5", "LLM": "http://llm:8080"} == environment


def test_what_the_harness_does_itself_is_no_container(project):
    """The model gateway is a host name on the network."""
    assert {"web", "db"} == set(project.content()["services"])


def test_a_dockerfile_that_is_not_there_is_named(compose, tmp_path):
    """With the service and the place that was looked at."""
    with pytest.raises(BadInput, match=r"services\.web\.build"):
        build_of(compose, "web")

    (tmp_path / "Web").write_text("FROM x\n")
    assert (tmp_path / "Web", tmp_path) == build_of(compose, "web")
