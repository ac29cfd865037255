"""How the pages are built (make docs): Markdown by MyST, the furo theme, and the reference made from the program."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

from headwise import __version__

project, author, release = "headwise", "the authors of headwise", __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
highlight_language = "text"  # of blocks that name none

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3  # so that page.md#heading leads somewhere, as it does where the code is hosted

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
maximum_signature_line_length = 110

html_theme = "furo"
html_title = f"headwise {__version__}"
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False


def plain(app, what, name, obj, options, lines):
    """Docstrings are plain text: code in single backticks, parameters in two columns."""
    for i, line in enumerate(lines):
        code = re.sub(r"`+([^`]+)`+", r"``\1``", line)
        lines[i] = re.sub(r"^(\w+) {2,}", r":param \1: ", code)


def add_reference(app, page, source):
    """A page in reference/ says what it is; the rest comes from the function of its name."""
    folder, _, name = page.partition("/")
    if folder == "reference":
        source[0] += "\n" + getattr(reference, name)()


def setup(app):
    app.connect("autodoc-process-docstring", plain)
    app.connect("source-read", add_reference)
