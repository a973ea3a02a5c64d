import pytest


@pytest.fixture(scope="session")
def orders(databases):
    with databases.open() as database:
        yield database


@pytest.fixture(scope="session")
def server(processes, orders):
    return processes.sync.start("shop", env=orders.environment)


@pytest.fixture
def dsn(orders):
    orders.sync.execute("truncate orders restart identity")
    return orders.url


@pytest.fixture
def shop(server, dsn):
    return server.url
