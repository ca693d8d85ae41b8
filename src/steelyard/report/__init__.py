"""One self-contained HTML page for a run: the verdict first, then figures and tables with a sentence each."""

from ..lazy import lazy_names

_MODULES = {"page": ("DataTable", "Figure", "Page", "Section", "page_html")}

__getattr__, __dir__ = lazy_names(__name__, _MODULES)
