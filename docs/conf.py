"""The site: Sphinx reads the Markdown of this folder as it is. `make docs` builds it into docs/_build."""

import sys
from collections import Counter
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(folder) for folder in (DOCS / "extensions", ROOT / "src", ROOT / "examples", ROOT / "tools")]

import public_names  # noqa: E402 - found by the line above
from pygments.lexers.special import TextLexer  # noqa: E402

import rbrl  # noqa: E402

project = "rbrl"
author = "The rbrl developers"
copyright = f"2026, {author}"
version = release = rbrl.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "api_pages",
    "repository_pages",
    "name_links",
    "shared_lists",
    "short_types",
    "source_links",
]
templates_path = ["templates"]
exclude_patterns = [
    "_build",
    "images",
    "reproduction",
    "templates",
    "extensions",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
    "auto_examples/**/*.ipynb",
]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

# Markdown: formulas between dollars, links to headings.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Docstrings: numpydoc's sections, types in the signature; what stands between single backticks is code.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
maximum_signature_line_length = 88


def file_names() -> dict[str, str]:
    """File names of names that differ in upper and lower case only, which some disks do not tell apart."""
    paths = sorted({public.path for public in public_names.public_names()})
    many = {lower for lower, count in Counter(path.lower() for path in paths).items() if count > 1}
    return {path: f"{path}-function" for path in paths if path.lower() in many and path.rpartition(".")[2].islower()}


autosummary_filename_map = file_names()

# Formulas: one file of MathJax, from the wheel of a package that is never imported; nothing comes from elsewhere.
MATHJAX = "static/mathjax/tex-svg.js"
mathjax_path = "tex-svg.js"
html_static_path = [
    "static",
    str(distribution("sphinx-mathjax-offline").locate_file(f"sphinx-mathjax-offline/{MATHJAX}")),
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # Shown without being run, where there is no PyTorch.
    "filename_pattern": r"/plot_" if find_spec("torch") else r"/plot_(?!last_layer)",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "doc_module": ("rbrl",),
    "backreferences_dir": "auto_examples/backreferences",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # a page that loads its table's script from elsewhere
    "show_signature": False,
    "image_scrapers": ("gallery",),  # tools/gallery.py: the figures of pyplot, and those that rbrl returns
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = f"rbrl {release}"
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "rbrl"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "search_as_you_type": True,
}
html_sidebars = {"index": []}


def setup(app):
    for block in ("layers", "csv"):
        app.add_lexer(block, TextLexer)
