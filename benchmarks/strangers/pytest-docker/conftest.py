from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest


def answers(url):
    try:
        return urlopen(f"{url}/health", timeout=5).status == 200
    except (URLError, ConnectionError):
        return False


@pytest.fixture(scope="session")
def server(docker_ip, docker_services):
    url = f"http://{docker_ip}:{docker_services.port_for('shop', 8000)}"
    docker_services.wait_until_responsive(timeout=30.0, pause=0.1, check=lambda: answers(url))
    return url


@pytest.fixture(scope="session")
def database(docker_ip, docker_services, server):
    url = f"postgresql://shop:shop@{docker_ip}:{docker_services.port_for('db', 5432)}/shop"
    with psycopg.connect(url) as connection, open("schema.sql") as schema:
        connection.execute(schema.read())
    return url


@pytest.fixture
def dsn(database):
    with psycopg.connect(database) as connection:
        connection.execute("truncate orders restart identity")
    return database


@pytest.fixture
def shop(server, dsn):
    return server
