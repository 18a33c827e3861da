"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import os
import re
from typing import Any

from resight import __version__

project = "resight"
copyright = "the authors of resight, BSD 3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["examples/README*"]
templates_path = ["templates"]

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]

autosummary_generate = True
# Functions whose pages would differ from those of a class by upper case alone.
autosummary_filename_map = {
    f"resight.{name}": f"resight.{name}-function"
    for name in (
        "sightings",
        "datasets.video.cut",
        "descriptors.lomo",
        "descriptors.gog",
        "descriptors.whos",
    )
}
autodoc_typehints = "none"  # numpydoc's sections state types
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "run_stale_examples": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "capture_repr": (),
    "reset_modules": ("matplotlib",),
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings cannot be pickled

html_theme = "pydata_sphinx_theme"
html_title = f"resight {version}"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False

os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples are small: threads only cost
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def escape(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep names such as ``n_components_`` and norms such as |x| from being read as links."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = line.split("`")
            parts[::2] = [
                re.sub(r"(?<=\w)_(?!\w)", r"\\_", part).replace("|", r"\|") for part in parts[::2]
            ]
            lines[number] = "`".join(parts)


def setup(app: Any) -> None:
    """Run `escape` after numpydoc."""
    app.connect("autodoc-process-docstring", escape, priority=900)
