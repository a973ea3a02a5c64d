"""The beginning of a new suite, and of a project that holds some.

- ``_suite.py``: :func:`scaffold_suite` writes ``suites/NAME``. ``_project.py``: :func:`scaffold_project`
  writes a folder with a noxfile and one suite, of a command line or a compose file.
- ``_guess.py``: how the services of a compose file may be run without containers.
- ``_write.py``: templates filled in, whole or not at all.
- ``template/``: ``counter`` and ``several`` (the same of several processes), ``command`` and ``compose``,
  ``project`` around them. ``@name@`` and the like stand for what is filled in, in file names too; ``.tmpl``
  keeps linters and pytest away from files that are not code yet.
"""

from harness_core.front.scaffold._project import Begun, scaffold_project
from harness_core.front.scaffold._suite import scaffold_suite

__all__ = ["Begun", "scaffold_project", "scaffold_suite"]
