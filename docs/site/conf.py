"""How Sphinx builds the site: scripts/docs_site.py gathers the pages, and calls it with this folder."""

project = "Mica"
html_title = "Mica"
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
suppress_warnings = ["myst.header"]  # generated pages of operators begin sections at any level

# Markdown as a code host reads it.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings: Google's form, single backticks are code, types stand in Args.
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shape", "Overloads"]
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
strip_signature_backslash = True

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
templates_path: list[str] = []
