"""What all figures share: colours that colour-blind readers tell apart, thinning that keeps peaks, safe texts.

A :class:`Chart` is a figure in plotly's own JSON: reports store it as it is, :meth:`Chart.figure` makes a plotly figure
of it for notebooks. Building figures as plotly's objects would check every property and take most of a report's time.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..text import for_terminal

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = {
    "measured": "#8a8f98", "predicted": "#0072b2", "error": "#d55e00", "reference": "#009e73", "other": "#cc79a7",
    "limit": "#e69f00", "as recorded": "rgba(138,143,152,0.45)",
}  # fmt: skip
"""Colours by meaning, of Okabe and Ito's set: told apart with any colour vision, on light and on dark paper."""

CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98")

MOST_POINTS = 1500
"""Points of a line that a report shows: more than a plot has pixels."""

ROW = 150
"""Height of one joint's row of plots [pixels]."""

LONGEST = 40
"""Letters of a text in a figure, if not said."""

_ACROSS = 66  # letters of titles side by side in the narrowest figure
_ABOVE, _BELOW = 60, 60
_BAR = 22  # pixels of plotly's own buttons, which a legend in a narrow window would run into
_AXIS = {"gridcolor": "rgba(128,128,128,0.25)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
_CLEAR = "rgba(0,0,0,0)"


def plot_text(text: str, longest: int = LONGEST) -> str:
    """Return untrusted text for a figure: plotly takes tags and entities for markup, quotes for quotes.

    Long texts lose their middle: names of joints often differ at their ends.
    """
    shown = for_terminal(text)
    if len(shown) > longest:
        shown = f"{shown[: longest // 2]}…{shown[len(shown) - (longest - 1) // 2 :]}"
    return html.escape(shown, quote=False)


def numbers(values: np.ndarray) -> dict[str, str]:
    """Return numbers as a figure stores them: seven digits are more than a screen shows; NaN interrupts a line."""
    found = np.asarray(values)
    kind = "i4" if found.dtype.kind in "iu" else "f4"
    return {"dtype": kind, "bdata": base64.b64encode(found.astype(f"<{kind}").tobytes()).decode()}


class Chart:
    """A figure: traces in one or several plots, one below the other or in columns.

    Args:
        height: Height of one row of plots, or of the whole if there is one [pixels].
        rows: Rows of plots.
        columns: Columns of plots.
        titles: Title of each plot, row by row.
        linked: Whether all plots zoom alike in x, with one axis at the bottom.
        gap: Space between two columns, as a part of the width.
    """

    def __init__(
        self,
        height: int,
        rows: int = 1,
        columns: int = 1,
        titles: Sequence[str] = (),
        *,
        linked: bool = False,
        gap: float = 0.07,
    ) -> None:
        self.data: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []
        self.columns = columns
        between = 18 if linked else 78  # pixels between two rows: tick labels and titles need room
        inner = height * rows - (between if rows > 1 else 0)
        self.height = _ABOVE + _BELOW + inner
        self.layout: dict[str, Any] = {
            "height": self.height, "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR, "colorway": list(CYCLE),
            "margin": {"l": 70, "r": 20, "t": _ABOVE, "b": _BELOW}, "hovermode": "closest",
            "font": {"family": "system-ui, sans-serif", "size": 12},
            "legend": {"orientation": "h", "yref": "container", "y": 1 - _BAR / self.height, "yanchor": "top", "x": 0},
            "modebar": {"bgcolor": _CLEAR, "color": "#8a8f98", "activecolor": "#0072b2"},
            "annotations": [], "shapes": [],
        }  # fmt: skip
        width = (1 - gap * (columns - 1)) / columns
        for k in range(rows * columns):
            row, column = divmod(k, columns)
            top = 1 - row * height / inner
            bottom = top - (height - between) / inner if rows > 1 else 0.0
            left = column * (width + gap)
            self.x_axis(k, anchor=f"y{_number(k)}", domain=[left, left + width])
            self.y_axis(k, anchor=f"x{_number(k)}", domain=[max(0.0, bottom), top])
            if linked:
                self.x_axis(k, matches="x" if k else None, showticklabels=row == rows - 1)
            if titles:
                self._title(titles[k], left + width / 2, top)

    def _title(self, text: str, x: float, y: float) -> None:
        """Add the title of a plot, as long as its column has room for; the whole is shown where it is pointed at."""
        shown = plot_text(text, min(LONGEST, _ACROSS // self.columns))
        whole = plot_text(text, 4 * LONGEST)
        hover = {} if shown == whole else {"hovertext": whole}
        self.layout["annotations"].append(
            {"text": shown, "x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom",
             "showarrow": False, "font": {"size": 12}, **hover}
        )  # fmt: skip

    def add(self, place: int = 0, **trace: Any) -> None:
        """Add a trace to the plot of that number, from 0."""
        axes = (
            {}
            if trace.get("type", "").endswith("3d")
            else {"xaxis": f"x{_number(place)}", "yaxis": f"y{_number(place)}"}
        )
        self.data.append({"type": "scatter", **axes, **trace})

    def x_axis(self, place: int = 0, **changes: Any) -> None:
        """Change the x axis of a plot."""
        self._axis("xaxis", place, changes)

    def y_axis(self, place: int = 0, **changes: Any) -> None:
        """Change the y axis of a plot."""
        self._axis("yaxis", place, changes)

    def _axis(self, name: str, place: int, changes: Mapping[str, Any]) -> None:
        axis = self.layout.setdefault(f"{name}{_number(place)}", dict(_AXIS))
        for key, value in changes.items():
            is_text = key == "title" and isinstance(value, str)
            axis[key] = {"text": value, "standoff": 6} if is_text else value

    def level(self, value: float, text: str = "", place: int = 0, *, vertical: bool = False) -> None:
        """Add a dashed line across a plot, with a text beside it."""
        along, across = ("x", "y") if vertical else ("y", "x")
        mine, number = f"{along}{_number(place)}", _number(place)
        logarithmic = self.layout[f"{along}axis{number}"].get("type") == "log"
        self.layout["shapes"].append(
            {"type": "line", f"{along}0": value, f"{along}1": value, f"{along}ref": mine, f"{across}0": 0,
             f"{across}1": 1, f"{across}ref": f"{across}{number} domain",
             "line": {"dash": "dash", "width": 1.2, "color": COLOURS["limit"]}}
        )  # fmt: skip
        if text:
            at = float(np.log10(value)) if logarithmic else value  # shapes take values, annotations exponents
            self.layout["annotations"].append(
                {"text": plot_text(text), along: at, f"{along}ref": mine, across: 1, "showarrow": False,
                 f"{across}ref": f"{across}{number} domain", "xanchor": "left" if vertical else "right",
                 "yanchor": "top" if vertical else "bottom", "font": {"size": 11, "color": COLOURS["limit"]}}
            )  # fmt: skip

    def to_json(self) -> str:
        """Return the figure as plotly's JSON."""
        content: dict[str, Any] = {"data": self.data, "layout": self.layout}
        return json.dumps(content | ({"frames": self.frames} if self.frames else {}), separators=(",", ":"))

    def figure(self) -> go.Figure:
        """Return a plotly figure."""
        import plotly.graph_objects as go  # imported when used: reports need only its script

        return go.Figure({"data": self.data, "layout": self.layout, "frames": self.frames})


def _number(place: int) -> str:
    return "" if place == 0 else f"{place + 1}"


def thin(x: np.ndarray, y: np.ndarray, most: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Return at most ``most`` points of a line over ascending x (n,): the extremes of every part, gaps (NaN) kept.

    Parts are equally wide in x, not in points: what was thinned before is drawn as finely as what was not.
    """
    if len(y) <= most:
        return x, y
    inner = np.linspace(x[0], x[-1], max(1, most // 3) + 1)[1:-1]
    starts = np.unique(np.concatenate([[0], np.searchsorted(x, inner)]))
    starts = starts[starts < len(x)]
    part = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(x)))
    gap = np.isnan(y)
    least, greatest = np.where(gap, np.inf, y), np.where(gap, -np.inf, y)
    picked = np.unique(np.concatenate([
        _first_of(part, least == np.minimum.reduceat(least, starts)[part]),
        _first_of(part, greatest == np.maximum.reduceat(greatest, starts)[part]),
        _first_of(part, gap),
    ]))  # fmt: skip
    return x[picked], y[picked]


def _first_of(part: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the first chosen point (n,) of every part that has one."""
    where = np.flatnonzero(chosen)
    return where[np.unique(part[where], return_index=True)[1]]


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


class EvenSample:
    """Columns that come in blocks, of which some are taken, evenly spread: memory does not grow with them.

    Args:
        most: Columns taken at most, about.
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
        """Return the columns taken (m, n)."""
        return np.concatenate(self._parts, axis=1)


def spread_sample(values: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Return at most ``most`` columns of values (m, n), evenly spread: clouds of points need no peaks."""
    if values.shape[1] <= most:
        return values
    return values[:, np.linspace(0, values.shape[1] - 1, most).astype(int)]
