"""Which imports make a circle, and how one is reported."""

import pytest

from harness_core.assurance.requirements import SourceFile, check_circles

FOLDER = "suites/demo/reference-system/shop"


def circles(**modules: str) -> list[str]:
    """What is found in a package ``shop`` of these modules and a package ``shop.db``."""
    texts = {"__init__": "", "db/__init__": "from shop.db.rows import Row\n"} | modules
    files = [SourceFile.parse(text, path=f"{FOLDER}/shop/{p}.py") for p, text in texts.items()]
    return [str(problem).removeprefix(f"{FOLDER}/shop/") for problem in check_circles(files)]


def test_circle_is_named_from_end_to_end():
    """A finding stands at an import of the circle and names every module of it in order."""
    found = circles(
        server="import json\nfrom shop.router import Router\n",
        router="from shop import wire\n",
        wire="from shop.server import Daemon\n",
    )

    names = "shop.server -> shop.router -> shop.wire -> shop.server"
    assert [f"server.py:2: import-circle: {names}; move what both ends need below them"] == found


@pytest.mark.parametrize(
    "back",
    [
        "import shop.a\n",
        "from shop import a\n",
        "from shop.a import name\n",
        "from . import a\n",
        "from .a import name\n",
        "def late():\n    from shop.a import name\n",
        "if TYPE_CHECKING:\n    from shop.a import name\n",
        'late = import_module("shop.a")\n',
    ],
)
def test_every_kind_of_import_counts(back):
    """An import inside a function, for types, relative or by call closes a circle as any other."""
    assert 1 == len(circles(a="import shop.b\n", b=back))


def test_each_circle_is_found():
    """Two circles are two findings, also when they share a module."""
    found = circles(a="import shop.b, shop.c\n", b="import shop.a\n", c="import shop.a\n")

    assert 2 == len(found)


def test_package_and_its_modules():
    """A package may import its modules and they each other; they may not import names of it."""
    assert [] == circles(**{"db/rows": "from shop.db import pool\n", "db/pool": ""})
    assert 1 == len(circles(**{"db/rows": "from shop.db import connect\n"}))
    assert 1 == len(circles(**{"db/rows": "from . import connect\n"}))


def test_what_is_no_circle():
    """Neither libraries nor files of one name in other folders are taken for modules of the package."""
    assert [] == circles(json="import json\n", a="import shop.json, a\n")


def test_accepted_circle_has_a_reason():
    """A circle that is right all the same is accepted where it is found."""
    allowed = "import shop.b  # lint: allow import-circle: two halves of one grammar\n"

    assert [] == circles(a=allowed, b=allowed.replace("shop.b", "shop.a"))
