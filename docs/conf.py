"""How Sphinx builds the site: `make docs`, offline, with every warning an error.

The pages are Markdown (MyST) that reads well on the repository's page too. What can be read off
the code is written at build by `generate.py`: every public name, every verb of the command, every
setting, and the tables of the study. Tutorials are the scripts of examples/, executed at build.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "study"), str(HERE.parent)]

import generate  # noqa: E402
import names  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

import misscnf  # noqa: E402

project = "misscnf"
author = "the misscnf contributors"
copyright = author
release = version = misscnf.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "tutorials/*.ipynb", "tutorials/*.py", "tutorials/*.zip"]

# Markdown: headings can be linked to as on the repository's page.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Names in single backticks are code, and lead to what they name where that has a page.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "generate.TutorialOrder",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "generate.quiet_plots"),
    "min_reported_time": 0,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "misscnf"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "misscnf"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "light"}

generate.write_pages(HERE)


def setup(app: Sphinx) -> None:
    """Rewrites links that leave docs/ and docstrings that are Markdown, and links names."""
    app.connect("source-read", generate.rewrite_links)
    app.connect("doctree-read", names.link_names)
    app.connect("autodoc-process-bases", names.public_bases)
    app.connect("autodoc-process-signature", names.plain_signature)
    app.connect("autodoc-process-docstring", names.as_restructured_text, priority=100)
