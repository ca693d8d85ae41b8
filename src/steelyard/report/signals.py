"""Pages of signals: a recording, a motion, and the findings of the checks of logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..motion import Trajectory, limit_violations
from ..motion.figures import motion_chart
from ..plots import Chart, JointSeries, Line, Thinned, grid_plot, series_plot
from ..recording import Finding, Recording, TorqueChannel
from ..recording.figures import recording_chart
from ..robot import Robot
from ..text import counted, for_terminal
from .page import DataTable, Figure, Page, PageSection

MOST_PLACES, PLACES_EACH = 12, 2
"""Places of findings whose surroundings are drawn, of all findings and of each."""

AROUND = 50
"""Samples before and after a place that are drawn."""

GAP = 10.0
"""Steps this many times longer than the usual one interrupt the lines."""

_FINDINGS = ["number", "severity", "channel", "joint", "finding", "count", "first at", "what to do"]


def motion_page(trajectory: Trajectory, name: str, robot: Robot | None = None) -> Page:
    """Return a page of a motion, with the limits of an arm if one is given.

    Args:
        trajectory: The motion.
        name: What it is called.
        robot: Its arm.
    """
    extrema = trajectory.extrema()
    fastest = int(np.argmax(np.abs(extrema.velocity.value)))
    unit = "rad/s or m/s" if robot is None else f"{_length(robot, trajectory.joints[fastest])}/s"
    said = f"Fastest: {trajectory.joints[fastest]} with {abs(extrema.velocity.value[fastest]):.3g} {unit}."
    broken = () if robot is None else limit_violations(trajectory, robot)
    if robot is not None:
        said += f" Not kept: {counted(len(broken), 'limit')}." if broken else " All limits of the arm are kept."
    rows = [[one.joint, one.quantity, one.value, one.limit, one.time] for one in broken]
    tables = [DataTable("violations", ["joint", "quantity", "value", "limit", "time [s]"], rows, "Limits not kept.")]
    return Page(
        title=f"Motion {name}",
        subtitle=f"{len(trajectory.joints)} joints, {trajectory.duration:g} s" + (f", {robot.name}" if robot else ""),
        sections=[
            PageSection(
                "Motion",
                [
                    Figure("motion", motion_chart(trajectory, robot),
                           f"Position, velocity and acceleration of every joint; limits near them are dashed. {said}"),
                    *(tables if rows else ()),
                ],
            )
        ],
        facts={"duration": f"{trajectory.duration:g} s", "joints": f"{len(trajectory.joints)}"},
    )  # fmt: skip


def _length(robot: Robot, joint: str) -> str:
    return "m" if robot.joint(joint).kind == "prismatic" else "rad"


def recording_page(recordings: Mapping[str, Recording], robot: Robot) -> Page:
    """Return a page of recordings by name."""
    sections = []
    for number, (name, one) in enumerate(recordings.items(), 1):
        rate = 1 / float(np.median(np.diff(one.time))) if one.samples > 1 else 0.0
        found = counted(len(one.findings), "finding") if one.findings else "no findings"
        figure = Figure(
            f"signals-{number}", recording_chart(one, robot),
            f"Signals as recorded: {one.samples} samples over {one.duration:.4g} s, about {rate:.4g} Hz; {found} of "
            "the checks.",
        )  # fmt: skip
        parts: list[Figure | DataTable] = [figure]
        if one.findings:
            parts.append(findings_table(f"findings-{number}", one.findings))
        sections.append(PageSection(for_terminal(name), parts, points=one.notes))
    return Page(
        title=f"Recording {next(iter(recordings))}" if len(recordings) == 1 else f"{len(recordings)} recordings",
        subtitle=f"{robot.name}, {len(robot.joint_names)} joints",
        sections=sections,
    )


def findings_table(name: str, findings: Sequence[Finding], note: str = "") -> DataTable:
    """Return a table of findings, numbered; a note ends its caption."""
    rows = [
        [k, one.severity, one.channel, one.joint, one.text, one.count or None,
         _first_place(one), one.remedy]
        for k, one in enumerate(findings, 1)
    ]  # fmt: skip
    caption = f"Findings of the checks, with the first place of each. {note}".strip()
    return DataTable(name, _FINDINGS, rows, caption, digits=9)


def model_section(findings: Sequence[Mapping[str, Any]]) -> PageSection:
    """Return what a model of the arm shows, as a part of a page.

    Args:
        findings: Rows with ``severity``, ``joint``, ``text``, ``value``, ``interval``, ``unit`` and ``remedy``.
    """
    rows = [
        [one["severity"], one["joint"], one["text"], one["value"], *(one["interval"] or (None, None)), one["unit"],
         one["remedy"]]
        for one in findings
    ]  # fmt: skip
    columns = ("severity", "joint", "finding", "value", "from", "to", "unit", "remedy")
    caption = "What a plain model of the arm shows of all recordings together; from and to: 95 % interval."
    said = f"{counted(len(findings), 'finding')}."
    return PageSection("With a model of the arm", [DataTable("model-findings", columns, rows, caption)], said)


def _first_place(finding: Finding) -> str:
    if not finding.where:
        return ""
    number = f"{finding.where[0]:.6f}".rstrip("0").rstrip(".")
    return f"{number} s" if finding.where_unit == "s" else f"{finding.where_unit} {number}"


@dataclass(frozen=True)
class _Place:
    """A place to draw; ``time`` is that of the sample before it where the place itself has no sample."""

    number: int
    finding: Finding
    time: float

    @property
    def is_step(self) -> bool:
        """Whether it is a step from sample to sample, not a sample."""
        return self.finding.channel == "time"

    @property
    def has_no_sample(self) -> bool:
        """Whether samples are missing there."""
        return self.finding.kind == "gap" or self.finding.where_unit == "row"


@dataclass
class CheckedSignals:
    """Signals of a recording that is read in blocks, thinned as they come; then those about its findings.

    Attributes:
        robot: The arm.
    """

    robot: Robot
    _lines: dict[str, Thinned] = field(default_factory=dict)
    _steps: Thinned = field(default_factory=lambda: Thinned(1))
    _last: float | None = None
    _usual: float = np.inf
    _first: float = 0.0
    _torques: dict[str, TorqueChannel] = field(default_factory=dict)

    def add(self, block: Recording) -> None:
        """Take the next block."""
        if self._last is None:
            self._first = float(block.time[0])
            self._usual = float(np.median(np.diff(block.time))) if block.samples > 1 else np.inf
        stamps = block.time if self._last is None else np.append(self._last, block.time)
        steps = np.diff(stamps)
        self._steps.add(stamps[1:] - self._first, 1e3 * steps[None])
        time, ends = block.time - self._first, np.flatnonzero(np.diff(block.time) > GAP * self._usual) + 1
        begins_after_gap = self._last is not None and block.time[0] - self._last > GAP * self._usual
        for name, values in _channels(block).items():
            lines = self._lines.setdefault(name, Thinned(len(values)))
            for k, part in enumerate(np.split(np.arange(block.samples), ends)):
                if k or begins_after_gap:
                    lines.break_lines(float(time[part[0]]))
                lines.add(time[part], values[:, part])
        self._torques = {channel.name: channel for channel in block.torques}
        self._last = float(block.time[-1])

    def page_section(
        self, number: int, title: str, findings: Sequence[Finding], blocks: Iterator[Recording], notes: Sequence[str]
    ) -> PageSection:
        """Return the part of a page about this recording.

        Args:
            number: Its number in the page.
            title: Its name.
            findings: What the checks found.
            blocks: The recording again, for the samples about its findings; read only if there are places to show.
            notes: What was assumed in reading it.
        """
        parts: list[Figure | DataTable] = []
        places = _places(findings)
        drawn = self._around(places, blocks) if places else []
        shown = {place.number for place, row in zip(places, drawn, strict=True) if row is not None}
        if findings:
            parts.append(findings_table(f"findings-{number}", findings, _without_picture(findings, places, shown)))
        if shown:
            rows = [row for row in drawn if row is not None]
            parts.append(
                Figure(
                    f"around-{number}", series_plot(rows, "samples from the finding"),
                    "Signals about places of findings, with the number of the finding. Places drawn: "
                    f"{len(rows)} of {sum(len(one.where) for one in findings)} that the checks name, the first "
                    f"{PLACES_EACH} of each finding (where rows are left out, the first), the worst findings first, "
                    f"at most {MOST_PLACES} in all.",
                )
            )  # fmt: skip
        parts += [self._time_steps(number), self._overview(number)]
        said = f"{counted(len(findings), 'finding')}." if findings else "The checks found nothing."
        return PageSection(title, parts, said, points=notes)

    def _time_steps(self, number: int) -> Figure:
        (line,) = self._steps.lines()
        values = line[1][np.isfinite(line[1])]
        least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        return Figure(
            f"steps-{number}", series_plot([JointSeries("time step", "ms", {"measured": line}, is_stepped=True)]),
            f"Time from sample to sample: usually {1e3 * self._usual:.4g} ms, from {least:.4g} to {most:.4g} ms.",
        )  # fmt: skip

    def _overview(self, number: int) -> Figure:
        columns = {}
        for name, lines in self._lines.items():
            drawn = lines.lines()
            titles = self.robot.joint_names if len(drawn) == len(self.robot.joint_names) else _WRENCH
            columns[name] = [
                JointSeries(title, self._unit(name, title), {"measured": line})
                for title, line in zip(titles, drawn, strict=False)
            ]
        chart: Chart = grid_plot(columns)
        return Figure(
            f"signals-{number}", chart,
            f"All of the recording: {', '.join(columns)}, thinned to what a screen shows; peaks stay.",
        )  # fmt: skip

    def _unit(self, channel: str, joint: str) -> str:
        torque = self._torques.get(channel)
        if torque is not None and torque.kind in ("motor_current", "motor_pwm"):
            return "A" if torque.kind == "motor_current" else "full scale"
        slides = joint in self.robot.joint_names and _length(self.robot, joint) == "m"
        if torque is not None:
            return "N" if slides or joint in ("fx", "fy", "fz") else "N m"
        return ("m" if slides else "rad") + ("/s" if channel == "velocity" else "")

    @property
    def _typical(self) -> float:
        return self._usual if np.isfinite(self._usual) else 0.01

    def _around(self, places: Sequence[_Place], blocks: Iterator[Recording]) -> list[JointSeries | None]:
        """Return the samples about every place, of the joint and channel that the finding names."""
        taken: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in places]
        reach, last = AROUND * self._typical, -np.inf
        for block in blocks:
            for place, parts in zip(places, taken, strict=True):
                chosen = np.abs(block.time - place.time) <= reach
                if max(last, self._first) <= place.time <= block.time[-1]:  # samples behind a gap are far in time
                    nearest = int(np.searchsorted(block.time, place.time))
                    chosen[max(0, nearest - AROUND) : nearest + AROUND] = True
                signal = _signal(block, place.finding, last)
                if chosen.any() and signal is not None:
                    parts.append((block.time[chosen] - place.time, signal[chosen]))
            last = float(block.time[-1])
        return [self._row(place, parts) for place, parts in zip(places, taken, strict=True)]

    def _row(self, place: _Place, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> JointSeries | None:
        if not parts:
            return None
        time, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        finding = place.finding
        joint = finding.joint or self.robot.joint_names[0]
        channel = {"q": "position", "qd": "velocity"}.get(finding.channel, finding.channel)
        unit = "ms" if channel == "time" else self._unit(channel, joint)
        title = f"{place.number}: {'time step' if place.is_step else joint}"
        line, points = _picture(place, time / self._typical, values)
        return JointSeries(title, unit, {"measured": line}, {"place": points}, is_stepped=place.is_step)


def _picture(place: _Place, steps: np.ndarray, values: np.ndarray) -> tuple[Line, Line]:
    """Return line and marked points over samples from a place; ``steps`` is the time from it in usual steps.

    Where samples are missing, a step is marked that spans them, or the samples on both sides, as far apart as they are.
    """
    if place.has_no_sample and not place.is_step:
        near = np.abs(steps) <= AROUND
        steps, values = steps[near], values[near]
    before = int(np.argmin(np.abs(steps)))
    after = min(before + 1, len(values) - 1)
    if place.is_step or not place.has_no_sample:
        marked = [after if place.has_no_sample else before]
        samples = np.arange(len(values)) - float(marked[0])
        return (samples, values), (samples[marked], values[marked])
    marks = steps[[before, after]], values[[before, after]]
    breaks = np.flatnonzero(np.diff(steps) > 1.5) + 1
    return (np.insert(steps, breaks, steps[breaks]), np.insert(values, breaks, np.nan)), marks


_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")


def _channels(block: Recording) -> dict[str, np.ndarray]:
    speeds = {} if block.qd is None else {"velocity": block.qd}
    return {"position": block.q, **speeds, **{channel.name: channel.values for channel in block.torques}}


def _places(findings: Sequence[Finding]) -> list[_Place]:
    """Return the first places of findings whose time is known, the worst findings first."""
    order = {"bad": 0, "warning": 1, "info": 2}
    numbered = sorted(enumerate(findings, 1), key=lambda pair: order.get(pair[1].severity, 3))
    found = [_Place(number, one, float(time)) for number, one in numbered for time in _times(one)[:PLACES_EACH]]
    return found[:MOST_PLACES]


def _times(finding: Finding) -> tuple[float, ...]:
    """Return when the places of a finding are; of rows that were left out, the stamp of the sample before the first."""
    if finding.where_unit == "row":
        return (finding.values["sample_before"],) if "sample_before" in finding.values else ()
    return finding.where if finding.where_unit == "s" else ()


def _without_picture(findings: Sequence[Finding], places: Sequence[_Place], shown: set[int]) -> str:
    """Return a sentence on which findings are not drawn, and why; empty if all are."""
    chosen = {place.number for place in places}
    reasons: dict[str, list[str]] = {}
    for number, one in enumerate(findings, 1):
        if number in shown:
            continue
        if not one.where:
            why = "about all of the recording"
        elif not _times(one):
            why = "lines of the file, not samples" if one.where_unit == "line" else "no sample before these rows"
        else:
            why = "its channel is not drawn" if number in chosen else f"beyond the first {MOST_PLACES} places"
        reasons.setdefault(why, []).append(str(number))
    listed = [f"{', '.join(numbers)} ({why})" for why, numbers in reasons.items()]
    return f"Without a picture: {'; '.join(listed)}." if listed else ""


def _signal(block: Recording, finding: Finding, last: float) -> np.ndarray | None:
    """Return the samples (k,) of what a finding is about; for stamps the steps [ms], the first from ``last``."""
    if finding.channel == "time":
        return 1e3 * np.diff(block.time, prepend=last if np.isfinite(last) else np.nan)
    values = {"q": block.q, "qd": block.qd, **{one.name: one.values for one in block.torques}}.get(finding.channel)
    if values is None:
        return None
    row = block.joints.index(finding.joint) if finding.joint in block.joints else 0
    return values[row]


def check_page(
    robot: Robot,
    recordings: Sequence[PageSection],
    by_model: Sequence[Mapping[str, Any]],
    severities: Mapping[str, int],
    provenance: Mapping[str, str],
) -> Page:
    """Return the report of the checks of recordings.

    Args:
        robot: The arm.
        recordings: A part for each recording.
        by_model: What a model of the arm shows, as :func:`model_section` takes it.
        severities: How many findings there are by severity.
        provenance: Where it comes from, texts by name.
    """
    return Page(
        title=f"Checks of {counted(len(recordings), 'recording')}",
        subtitle=f"{robot.name}: checks of logs before any fit",
        sections=[*([model_section(by_model)] if by_model else ()), *recordings],
        facts={f"findings: {severity}": f"{count}" for severity, count in severities.items()},
        provenance=provenance,
    )
