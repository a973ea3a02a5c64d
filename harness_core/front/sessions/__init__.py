"""The nox sessions of a tree of suites: what its noxfile says in a few lines.

- ``_tree.py``: :func:`read_tree`, the suites of a tree as far as nox needs them.
- ``_reading.py``: their ``suite.toml``, with one sentence for each mistake.
- ``_environment.py``: what is installed into the environment of a session, and when.
- ``_words.py``: the words of a command line after ``--``, and those of pytest.
- ``_suite.py``: the sessions of one suite. ``_across.py``: those that take a suite's name.
- ``_add.py``: :func:`add_sessions` makes all of them.

nox reads a noxfile where nothing but nox may be installed, so this package imports nox and the standard
library alone: a test holds it to that.
"""

from harness_core.front.sessions._across import bench
from harness_core.front.sessions._add import add_sessions
from harness_core.front.sessions._environment import install
from harness_core.front.sessions._tree import Tree, read_tree
from harness_core.front.sessions._words import option, pytest, pytest_words

__all__ = [
    "Tree",
    "add_sessions",
    "bench",
    "install",
    "option",
    "pytest",
    "pytest_words",
    "read_tree",
]
