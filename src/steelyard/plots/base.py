"""What all figures share: colours that colour-blind readers tell apart, thinning that keeps peaks, safe texts.

plotly is imported when the first figure is drawn: no command that draws none waits for it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..text import for_terminal

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = {
    "measured": "#8a8f98", "predicted": "#0072b2", "error": "#d55e00", "reference": "#009e73", "other": "#cc79a7",
    "limit": "#e69f00",
}  # fmt: skip
"""Colours by meaning, of Okabe and Ito's set: told apart with any colour vision, on light and on dark paper."""

CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98")

MOST_POINTS = 2000
"""Points of a line that a report shows: two for each pixel of a wide screen."""

ROW = 150
"""Height of one joint's row of subplots [pixels]."""


def plot_text(text: str, longest: int = 40) -> str:
    """Return untrusted text for a figure: plotly takes tags and entities for markup."""
    shown = for_terminal(text)
    return html.escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def new_figure(height: int, **layout: Any) -> go.Figure:
    """Return an empty figure in the style of all: no paper of its own, so that pages may be light or dark."""
    import plotly.graph_objects as go

    figure = go.Figure()
    return styled(figure, height, **layout)


def subplots(rows: int, height: int, titles: Sequence[str] = (), columns: int = 1, **options: Any) -> go.Figure:
    """Return a figure of several plots, one below the other, or in columns."""
    from plotly.subplots import make_subplots

    gap = min(0.03 if columns == 1 else 0.09, 0.5 / max(1, rows))
    found = make_subplots(
        rows, columns, vertical_spacing=gap, subplot_titles=[plot_text(title) for title in titles] or None, **options
    )
    found.update_annotations(font_size=12)
    return styled(found, height)


def styled(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    """Return a figure with the style of all."""
    figure.update_layout(
        template="none", height=height, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 70, "r": 20, "t": 40, "b": 50}, colorway=list(CYCLE), hovermode="closest",
        font={"family": "system-ui, sans-serif", "size": 12}, legend={"orientation": "h", "y": 1, "yanchor": "bottom"},
        **layout,
    )  # fmt: skip
    axis = {"gridcolor": "rgba(128,128,128,0.25)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure


def thin(x: np.ndarray, y: np.ndarray, most: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``most`` points of a line (n,): the least and the greatest of every stretch, gaps (NaN) kept."""
    count = len(y)
    if count <= most:
        return x, y
    buckets = max(1, most // 3)
    size = -(-count // buckets)
    padded = np.full(size * -(-count // size), np.nan)
    padded[:count] = y
    table = padded.reshape(-1, size)
    gap = np.isnan(table)
    first = np.arange(len(table)) * size
    least = first + np.argmin(np.where(gap, np.inf, table), axis=1)
    most_of = first + np.argmax(np.where(gap, -np.inf, table), axis=1)
    holes = first + np.argmax(gap, axis=1)
    holes = holes[gap.any(axis=1) & (holes < count)]
    picked = np.unique(np.concatenate([least, most_of, holes]))
    picked = picked[picked < count]
    return x[picked], y[picked]


class Thinned:
    """Lines that come in blocks, thinned as they come: memory does not grow with them.

    Args:
        lines: How many there are.
        most: Points of each at most.
    """

    def __init__(self, lines: int, most: int = MOST_POINTS) -> None:
        self._most = most
        self._parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(lines)]
        self._waiting = 0

    def add(self, x: np.ndarray, values: np.ndarray) -> None:
        """Take the next points x (k,) and values (lines, k)."""
        for parts, own in zip(self._parts, values, strict=True):
            parts.append((x, own))
        self._waiting += len(x)
        if self._waiting > 20 * self._most:
            for parts in self._parts:
                parts[:] = [thin(*_joined(parts), 4 * self._most)]
            self._waiting = 4 * self._most

    def break_lines(self, x: float) -> None:
        """Interrupt all lines at x."""
        self.add(np.array([x]), np.full((len(self._parts), 1), np.nan))

    def lines(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return x and y of every line."""
        return [thin(*_joined(parts), self._most) for parts in self._parts]


def _joined(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    if not parts:
        return np.zeros(0), np.zeros(0)
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def spread_sample(values: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Return at most ``most`` columns of values (m, n), evenly spread: clouds of points need no peaks."""
    if values.shape[1] <= most:
        return values
    return values[:, np.linspace(0, values.shape[1] - 1, most).astype(int)]


def compact(values: np.ndarray) -> np.ndarray:
    """Return numbers as a page stores them: seven digits are more than a screen shows."""
    return np.asarray(values, dtype=np.float32)


class EvenSample:
    """Columns that come in blocks, of which some are kept, evenly spread: memory does not grow with them.

    Args:
        most: Columns kept at most.
    """

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most, self._every, self._count = most, 1, 0
        self._parts: list[np.ndarray] = []

    def add(self, columns: np.ndarray) -> None:
        """Take the next columns (m, k)."""
        first = -self._count % self._every
        self._count += columns.shape[1]
        self._parts.append(columns[:, first :: self._every].copy())
        while sum(part.shape[1] for part in self._parts) > 2 * self._most:
            self._every *= 2
            self._parts = [np.concatenate(self._parts, axis=1)[:, ::2]]

    def values(self) -> np.ndarray:
        """Return the columns kept (m, n)."""
        return np.concatenate(self._parts, axis=1)
