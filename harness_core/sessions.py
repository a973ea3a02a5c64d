"""The nox sessions of a tree of suites, under the name that a noxfile imports.

    from pathlib import Path
    from harness_core.sessions import add_sessions, read_tree

    add_sessions(read_tree(Path(__file__).parent))

The code is in ``harness_core/front/sessions``.
"""

from harness_core.front.sessions import (
    Tree,
    add_sessions,
    bench,
    install,
    option,
    pytest,
    pytest_words,
    read_tree,
)

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
