"""Pages of ``docs/`` that are written from what the code declares, and held to it by ``harness lint``.

- ``_page.py``: a page and its blocks. ``_tree.py``: the pages of a tree, written and checked.
- ``_keys.py``: the keys of a file, from the types that read it; ``_files.py``: which files there are;
  ``_subject.py``: subject files, and the capabilities of suites.
- ``_plugin.py``: fixtures, marks and options of pytest. ``_markdown.py``: tables.

The command line says itself what it has (``harness_core.front.cli``).

Source: decision 0152.
"""

from harness_core.front.pages._keys import Key, keys_of
from harness_core.front.pages._markdown import markdown, table
from harness_core.front.pages._page import END, begin, page_text
from harness_core.front.pages._tree import check_pages, known_keys, pages_of

__all__ = [
    "END",
    "Key",
    "begin",
    "check_pages",
    "keys_of",
    "known_keys",
    "markdown",
    "page_text",
    "pages_of",
    "table",
]
