"""How Sphinx builds the site: `nox -s docs`, decision 0152."""

from importlib.metadata import version as installed

project = "Staging harness"
release = version = installed("staging-harness")
copyright = "the authors of the staging harness"  # noqa: A001 - Sphinx names it so

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

# Anchors are those of a forge, down to the fourth level.
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_ivar = True
napoleon_use_rtype = False

# Nothing is loaded from elsewhere: fonts are those of the reader, search is in the folder.
html_theme = "furo"
html_title = "Staging harness"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"footer_icons": []}
pygments_style = "friendly"
