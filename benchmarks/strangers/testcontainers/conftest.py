import os
import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest
from testcontainers.community.postgres import PostgresContainer


@pytest.fixture(scope="session")
def database():
    image = os.environ.get("POSTGRES_IMAGE", "postgres:18")
    with PostgresContainer(image, driver=None) as postgres:
        url = postgres.get_connection_url()
        with psycopg.connect(url) as connection, open("schema.sql") as schema:
            connection.execute(schema.read())
        yield url


@pytest.fixture(scope="session")
def server(database):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "shop.py", "127.0.0.1", str(port)],
        env={**os.environ, "DATABASE_URL": database},
    )
    deadline = time.monotonic() + 30
    while True:
        try:
            urlopen(f"{url}/health", timeout=5).close()
            break
        except URLError:
            assert process.poll() is None, "the shop has ended"
            assert time.monotonic() < deadline, "the shop does not answer"
            time.sleep(0.05)
    yield url
    process.terminate()
    process.wait(10)


@pytest.fixture
def dsn(database):
    with psycopg.connect(database) as connection:
        connection.execute("truncate orders restart identity")
    return database


@pytest.fixture
def shop(server, dsn):
    return server
