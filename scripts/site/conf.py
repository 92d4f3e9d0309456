"""What Sphinx needs to know of the site that scripts/site.sh builds."""

import os
import pathlib

here = pathlib.Path(__file__).parent

project = "stiefel"
author = "The stiefel developers"
root_doc = "README"
extensions = ["myst_parser", "breathe"]
breathe_projects = {"stiefel": os.environ["STIEFEL_DOXYGEN"]}
breathe_default_project = "stiefel"
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
html_theme = "furo"
html_title = "stiefel"
html_static_path = [str(here / "static")]
html_css_files = ["published.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it is fetched, which browsers refuse without a server
exclude_patterns = [".github", "docs/paper"]
