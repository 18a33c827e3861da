"""One self-contained HTML file per run; plots keep their data apart from their drawing."""

from resight.report.page import write

__all__ = ["write"]
