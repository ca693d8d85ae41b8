"""Draws the pictures of the documentation: ``PYTHONPATH=tests python docs/pictures.py``."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from browser import Browser
from steelyard.cli import main
from steelyard.robot import mdh_placement, transform_from_placement

HERE = Path(__file__).parent


def draw_report() -> None:
    """Draw the head of the report of ``steelyard demo``, in a browser without a window (see ``make browser``)."""
    with TemporaryDirectory() as folder:
        main(["demo", "--out", folder, "--quiet"])
        with Browser(1100, 1500) as browser:
            browser.open(Path(folder) / "report.html")
            browser.draw_all()
            browser.screenshot(HERE / "report.png", whole=False)


def draw_paper() -> None:
    """Draw the figures of P5's report."""
    with TemporaryDirectory() as folder:
        main(["papers", "P5", "--out", folder, "--quiet"])
        with Browser(1100, 1150) as browser:
            browser.open(Path(folder) / "report.html")
            browser.draw_all()
            browser.run("document.querySelector('figure').closest('section').scrollIntoView()")
            browser.screenshot(HERE / "papers.png", whole=False)


def project(point: np.ndarray) -> tuple[float, float]:
    """Return picture coordinates of a point in space: seen from the front, right and above."""
    x, y, z = point
    return 70 + 130 * (x - 0.45 * y), 395 - 130 * (z - 0.2 * y)


class Sketch:
    """Lines, arrows and words in space, collected as SVG."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def line(self, start: np.ndarray, end: np.ndarray, style: str, arrow: bool = False) -> None:
        """Draw a straight line, with an arrow head if asked."""
        (x1, y1), (x2, y2) = project(start), project(end)
        head = ' marker-end="url(#head)"' if arrow else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"{head}/>')

    def word(self, at: np.ndarray, text: str, dx: float = 0, dy: float = 0) -> None:
        """Write a word; an underscore starts a subscript that ends at the next blank."""
        x, y = project(at)
        lowered = re.sub(r"_(\S+)", r'<tspan class="s">\1</tspan>', text)
        self.parts.append(f'<text x="{x + dx:.1f}" y="{y + dy:.1f}">{lowered}</text>')

    def arc(self, centre: np.ndarray, first: np.ndarray, second: np.ndarray, radius: float) -> None:
        """Draw the turn from one unit direction to another about their common normal."""
        angle = np.arccos(first @ second)
        steps = np.linspace(0, angle, 25)
        directions = (np.sin(angle - steps)[:, None] * first + np.sin(steps)[:, None] * second) / np.sin(angle)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (project(centre + radius * d) for d in directions))
        self.parts.append(f'<polyline points="{points}" class="turn" marker-end="url(#turned)"/>')


def draw_frames() -> None:
    """Draw two modified DH frames with alpha, d, theta and r between them."""
    alpha, d, theta, r = np.radians(55), 2.4, np.radians(50), 1.5
    rotation, origin = transform_from_placement(mdh_placement(alpha, d, theta, r))
    x_before_theta = np.array([1.0, 0, 0])
    sketch, zero, ex, ez = Sketch(), np.zeros(3), np.array([1.0, 0, 0]), np.array([0, 0, 1.0])
    foot = d * ex
    xj, zj = rotation[:, 0], rotation[:, 2]
    sketch.line(zero - 0.4 * ez, zero + 2.3 * ez, "axis")
    sketch.line(foot - 0.4 * zj, foot + 2.9 * zj, "axis")
    sketch.line(foot, foot + 1.3 * ez, "help")
    sketch.line(origin, origin + 1.2 * x_before_theta, "help")
    sketch.line(zero, foot, "length")
    sketch.line(foot, origin, "length")
    for start, direction in ((zero, ex), (zero, ez), (origin, xj), (origin, zj)):
        sketch.line(start, start + 0.9 * direction, "frame", arrow=True)
    sketch.arc(foot, ez, zj, 1.1)
    sketch.arc(origin, x_before_theta, xj, 0.75)
    sketch.word(0.9 * ex, "x_j-1", -20, 24)
    sketch.word(0.9 * ez, "z_j-1", -42, 6)
    sketch.word(origin + 0.9 * xj, "x_j", 10, 4)
    sketch.word(origin + 0.9 * zj, "z_j", -28, -2)
    sketch.word(foot + 1.1 * ez, "α_j about x_j-1", -90, -14)
    sketch.word(0.6 * foot, "d_j along x_j-1", 0, 24)
    sketch.word(foot + 0.5 * r * zj, "r_j along z_j", 16, 8)
    sketch.word(origin + 0.75 * x_before_theta, "θ_j about z_j", 6, -14)
    sketch.word(2.3 * ez, "axis of joint j-1", -50, -10)
    sketch.word(foot + 2.9 * zj, "axis of joint j", -45, -10)
    (HERE / "frames.svg").write_text(FRAMES.replace("BODY", "\n".join(sketch.parts)), encoding="utf-8")


FRAMES = """<svg viewBox="0 0 640 480" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="16">
<style>
.axis { stroke: #8a94a0; stroke-dasharray: 9 3 2 3; }
.help { stroke: #8a94a0; stroke-dasharray: 3 3; }
.length { stroke: #c2571a; stroke-width: 5; }
.frame { stroke: #14508c; stroke-width: 2.5; }
.turn { stroke: #1a7f37; stroke-width: 2; fill: none; }
.s { font-size: 11px; baseline-shift: sub; }
</style>
<defs>
<marker id="head" markerUnits="userSpaceOnUse" markerWidth="14" markerHeight="10" refX="12" refY="5" orient="auto">
<path d="M0 0 L14 5 L0 10 z" fill="#14508c"/></marker>
<marker id="turned" markerUnits="userSpaceOnUse" markerWidth="12" markerHeight="9" refX="10" refY="4.5" orient="auto">
<path d="M0 0 L12 4.5 L0 9 z" fill="#1a7f37"/></marker>
</defs>
<rect width="640" height="480" fill="white"/>
BODY
</svg>
"""

if __name__ == "__main__":
    draw_report()
    draw_paper()
    draw_frames()
