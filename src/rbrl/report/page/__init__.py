"""One self-contained HTML page about a comparison."""

from rbrl.report.page.write import render_page, write_page

__all__ = ["render_page", "write_page"]
