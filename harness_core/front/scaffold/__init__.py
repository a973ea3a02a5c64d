"""The beginning of a new suite.

- ``_suite.py``: :func:`scaffold_suite` checks the name and writes the folder, whole or not at all.
- ``template/``: the folder it writes. ``@name@`` and ``@NAME@`` stand for the suite's name, in
  file names too; ``.tmpl`` keeps linters and pytest away from files that are not code yet.
"""

from harness_core.front.scaffold._suite import scaffold_suite

__all__ = ["scaffold_suite"]
