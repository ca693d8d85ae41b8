"""Figures of the papers drawn again from the simulated experiments; axes and layout follow the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..estimate import Estimate, History
from ..judge import filtered_torques, unit_of
from ..observe import RowSource, prepared_blocks, raw_samples
from ..plots import JointSeries, Thinned, histogram_plot, interval_plot, series_plot, thin
from ..report import Figure
from ..signals import evaluation_filter
from .fits import PaperFit, weighted_residuals

if TYPE_CHECKING:
    from .designs import Designed
    from .p1_filters import Filters
    from .p3_runs import OneRun3

_P1_UNITS = {
    "ZZR": "kg m²", "Fv": "N m s/rad", "Fs": "N m", "ZZ": "kg m²", "LMX": "kg m²", "LMY": "kg m²",
}  # fmt: skip


def torque_rows(source: RowSource, estimate: Estimate, cutoff: float) -> list[JointSeries]:
    """Return measured, computed and error torque of every equation below a cut-off [Hz]."""
    equations = source.equations
    count = len(equations.kinds_joints)
    lines = Thinned(3 * count)
    for block in filtered_torques(source, estimate, evaluation_filter(source.resolved.rate, cutoff)):
        lines.add(block.time, np.concatenate([block.measured, block.predicted, block.measured - block.predicted]))
    drawn = lines.lines()
    return [
        JointSeries(
            f"{joint}, {kind}", unit_of(equations, joint),
            dict(zip(("measured", "predicted", "error"), drawn[e::count], strict=True)),
        )
        for e, (kind, joint) in enumerate(equations.kinds_joints)
    ]  # fmt: skip


def error_percent(rows: Sequence[JointSeries]) -> float:
    """Return the rms of the errors drawn over that of the measured torques drawn [%]."""
    error, torque = (np.concatenate([row.lines[name][1] for row in rows]) for name in ("error", "measured"))
    return 100 * float(np.sqrt(np.mean(error**2) / np.mean(torque**2)))


def p1_figures(found: Filters, names: Mapping[str, tuple[str, float]], true: Mapping[str, float]) -> tuple[Figure, ...]:
    """Return figures 4 to 28: motor torques, states by the filter, parameters over time; of the first experiment.

    Args:
        found: The filters of every experiment.
        names: Column and factor of the paper's parameters.
        true: Their true values.
    """
    source = found.least_squares.fits[0].sources[0]
    figures = [_motor_torques(source)]
    recursive = _history(found.recursive[0].history)
    for case, states, parameters in (("case 2", (5, 8), (13, 20)), ("case 3", (9, 12), (21, 28))):
        kalman = _history(found.cases[case][0].history)
        prior = "rough" if case == "case 2" else "good"
        figures.append(_states(source, kalman, states, prior))
        figures.append(_convergence(recursive, kalman, names, true, parameters, prior))
    return tuple(figures)


def _history(history: History | None) -> History:
    assert history is not None  # recursive methods have one
    return history


def _motor_torques(source: RowSource) -> Figure:
    lines = Thinned(2)
    for block in raw_samples(source):
        lines.add(block.time, block.y)
    drawn = lines.lines()
    rows = [JointSeries(f"motor {k + 1}", "N m", {"measured": line}) for k, line in enumerate(drawn)]
    largest = " and ".join(f"{np.nanmax(np.abs(y)):.2g}" for _, y in drawn)
    return Figure(
        "figure-4", series_plot(rows),
        f"Figure 4: torques of motors 1 and 2 over the motion of the first experiment, up to {largest} N m.",
    )  # fmt: skip


def _states(source: RowSource, kalman: History, numbers: tuple[int, int], prior: str) -> Figure:
    measured = Thinned(4)
    for block in prepared_blocks(source):
        measured.add(block.time, np.stack([block.q[0], block.qd[0], block.q[1], block.qd[1]]))
    assert kalman.q is not None  # a Kalman filter has states
    assert kalman.qd is not None
    estimated = [kalman.q[0], kalman.qd[0], kalman.q[1], kalman.qd[1]]
    rows, off = [], []
    for k, (line, state) in enumerate(zip(measured.lines(), estimated, strict=True)):
        what, unit = (("position", "rad"), ("velocity", "rad/s"))[k % 2]
        lines = {"measured": line, "Kalman filter": thin(kalman.time, state)}
        rows.append(JointSeries(f"{what} {k // 2 + 1}", unit, lines))
        off.append(float(np.sqrt(np.mean((np.interp(line[0], kalman.time, state) - line[1]) ** 2))))
    return Figure(
        f"figure-{numbers[0]}", series_plot(rows),
        f"Figures {numbers[0]} to {numbers[1]}: positions and velocities measured and low-passed without delay, and by "
        f"the Kalman filter with a {prior} prior. The velocities differ by {off[1]:.2g} and {off[3]:.2g} rad/s (rms).",
    )  # fmt: skip


def _convergence(
    recursive: History,
    kalman: History,
    names: Mapping[str, tuple[str, float]],
    true: Mapping[str, float],
    numbers: tuple[int, int],
    prior: str,
) -> Figure:
    rows, ranges, close = [], [], {"recursive least squares": 0, "Kalman filter": 0}
    for name, (column, scale) in names.items():
        lines, last = {}, [true[name]]
        for method, history in (("recursive least squares", recursive), ("Kalman filter", kalman)):
            values = scale * history.values[history.columns.index(column)]
            lines[method] = thin(history.time, values)
            last.append(float(values[-1]))
            close[method] += bool(true[name]) and abs(values[-1] / (true[name] or 1.0) - 1) <= 0.05
        rows.append(JointSeries(name, _P1_UNITS[name.strip("12")], lines, levels={"true": true[name]}))
        reach = max(2 * (max(last) - min(last)), 0.5 * abs(true[name]))
        ranges.append([min(last) - reach, max(last) + reach])
    chart = series_plot(rows)
    for row, limits in enumerate(ranges):  # the first rows of a recursion have few data: they would decide the axis
        chart.y_axis(row, range=limits)
    known = sum(bool(value) for value in true.values())
    ends = ", ".join(f"{method} {count}" for method, count in close.items())
    return Figure(
        f"figure-{numbers[0]}", chart,
        f"Figures {numbers[0]} to {numbers[1]}: parameters over time by recursive least squares and by the Kalman "
        f"filter with a {prior} prior; the dashed line is the truth, the first values may lie outside. Within 5 % of "
        f"the truth in the end, of the {known} that are not zero: {ends}.",
    )  # fmt: skip


def p2_figures(unseen: Sequence[JointSeries], percent: Mapping[str, float]) -> tuple[Figure, ...]:
    """Return figure 3: the computed-torque test of model 2.

    Args:
        unseen: Torques of the unseen motion.
        percent: Relative error by torque kind [%].
    """
    return tuple(
        Figure(
            f"figure-3-{kind}", series_plot([row for row in unseen if row.title.endswith(f", {kind}")]),
            f"Figure 3: computed-torque test of model 2 on the unseen motion, {kind} torques measured, computed and "
            f"their difference, first experiment. The error is {error:.2g} % of the torque.",
        )
        for kind, error in percent.items()
    )  # fmt: skip


def excitation_figure(motion: Designed) -> Figure:
    """Return P2's figure 2: velocities and joint torques of the motion of optimisation B."""
    samples, torques = motion.trajectory.sample(motion.rate), motion.torques
    count = len(motion.trajectory.joints)
    rows = [
        JointSeries("velocities", "rad/s", {f"joint {k + 1}": thin(samples.time, samples.qd[k]) for k in range(count)}),
        JointSeries("torques", "N m", {f"joint {k + 1}": thin(samples.time, torques[k]) for k in range(count)}),
    ]
    return Figure(
        "figure-2", series_plot(rows),
        f"Figure 2: joint velocities and computed joint torques of optimisation B over {motion.trajectory.duration:g} "
        f"s. Mean torque of the wrist, joints 6 and 7: {motion.mean_torques[5]:.2g} and {motion.mean_torques[6]:.2g} "
        "N m.",
    )  # fmt: skip


def p3_figures(names: Sequence[str], one: OneRun3, truth: np.ndarray) -> tuple[Figure, ...]:
    """Return figure 3: convergence of the compliances over iterations, and their intervals; of one experiment."""
    change = 100 * (one.iterations / one.iterations[-1] - 1)
    number = np.arange(len(change), dtype=float)
    lines = {name: (number, change[:, k]) for k, name in enumerate(names)}
    chart = series_plot([JointSeries("change", "% of the last", lines)], "iteration of the weights (0: least squares)")
    chart.x_axis(dtick=1)
    offs = {method: 100 * (each / truth[:, None] - 1) for method, each in (("OLS", one.ols), ("WLS", one.wls))}
    intervals = {method: (each.mean(axis=1), (each[:, 1] - each[:, 0]) / 2) for method, each in offs.items()}
    narrower = float(np.median(intervals["OLS"][1] / intervals["WLS"][1]))
    return (
        Figure(
            "figure-3a", chart,
            "Figure 3a: compliances from iteration to iteration, as a change from the last. The first iteration "
            f"changes them by up to {np.abs(np.diff(change, axis=0)[0]).max():.2g} %, the last by up to "
            f"{np.abs(np.diff(change, axis=0)[-1]).max():.2g} %.",
        ),
        Figure(
            "figure-3b", interval_plot(names, intervals, "compliance less its true value [%]"),
            "Figure 3b: 3-sigma intervals of least squares and weighted least squares. Those of the weighted ones are "
            f"{narrower:.2g} times narrower (median); {one.overlapping} of {len(names)} pairs overlap.",
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AxisTorques:
    """Torques of axes along a motion, measured and computed.

    Attributes:
        time: Instants (N,) [s].
        q: Positions (n, N) [rad].
        measured: Measured torques (n, N) [N m].
        predicted: Torques computed by the identified model (n, N) [N m].
    """

    time: np.ndarray
    q: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray

    def rows(self, *, positions: bool = False) -> list[JointSeries]:
        """Return rows of torques with their residual, after one of positions if wanted."""
        found = []
        if positions:
            lines = {f"axis {k + 1}": thin(self.time, q) for k, q in enumerate(self.q)}
            found.append(JointSeries("positions", "rad", lines))
        for k, (measured, predicted) in enumerate(zip(self.measured, self.predicted, strict=True)):
            series = {"measured": measured, "predicted": predicted, "error": measured - predicted}
            lines = {name: thin(self.time, values) for name, values in series.items()}
            found.append(JointSeries(f"axis {k + 1}", "N m", lines))
        return found

    @property
    def mean_squares(self) -> str:
        """Mean squared residual of every axis, as text."""
        return ", ".join(f"{value:.3g}" for value in np.mean((self.measured - self.predicted) ** 2, axis=1))


def p4_motion_figure(number: int, criterion: str, motion: Designed) -> Figure:
    """Return figure 2 or 3: the motion that a criterion leads to."""
    samples = motion.trajectory.sample(motion.rate)
    lines = {f"axis {k + 1}": thin(samples.time, q) for k, q in enumerate(samples.q)}
    spans = ", ".join(f"{span:.2g}" for span in np.ptp(samples.q, axis=1))
    return Figure(
        f"figure-{number}", series_plot([JointSeries("positions", "rad", lines)]),
        f"Figure {number}: the motion found by criterion {criterion}, whose value is {motion.value:.4g}. The axes "
        f"cover {spans} rad.",
    )  # fmt: skip


def p4_torque_figures(fitted: AxisTorques, unseen: AxisTorques) -> tuple[Figure, ...]:
    """Return figures 4 and 5: torques of the experiment and of the validation, with what is left."""
    return (
        Figure(
            "figure-4", series_plot(fitted.rows()),
            "Figure 4: measured torque, mean of 16 periods of c2's motion, torque of the identified model, and the "
            f"residual. Its mean squares are {fitted.mean_squares} N² m² (paper: 81.1, 88.8, 23.1, of a real arm, "
            "whose friction the model does not describe at low speed).",
        ),
        Figure(
            "figure-5", series_plot(unseen.rows(positions=True)),
            "Figure 5: validation through 20 random points, positions, torques below 10 Hz and residual of c2's model. "
            f"Mean squares of the residual: {unseen.mean_squares} N² m² (paper: 45.0, 53.6, 12.0).",
        ),
    )  # fmt: skip


_P5_TORQUES = (
    (4, "A", ("joint_1, motor", "joint_2, motor"), "motor torques 1 and 2"),
    (5, "B", ("joint_1, joint", "joint_2, joint"), "joint torques 1 and 2"),
    (6, "C", ("joint_1, motor", "joint_1, joint"), "motor torque 1 and joint torque 1"),
    (7, "D", ("joint_1, difference", "joint_2, difference"), "differences of motor and joint torques 1 and 2"),
)


def p5_figures(fits: Mapping[str, PaperFit], cutoff: float) -> tuple[Figure, ...]:
    """Return figures 3 to 7: histograms of the residuals, and torques of models A to D.

    Args:
        fits: The models, fitted to the first experiment.
        cutoff: Cut-off under which torques are compared [Hz].
    """
    residuals = {f"model {model}": np.concatenate(weighted_residuals(fit)) for model, fit in fits.items()}
    beyond = ", ".join(
        f"{100 * np.mean(np.abs(values - values.mean()) > 2 * values.std()):.1f} %" for values in residuals.values()
    )
    figures = [
        Figure(
            "figure-3", histogram_plot(residuals),
            "Figure 3: residuals of one experiment in their standard deviations, with the Gaussian. Beyond two "
            f"standard deviations lie {beyond} of them (Gaussian: 4.6 %).",
        )
    ]  # fmt: skip
    for number, model, wanted, what in _P5_TORQUES:
        rows = torque_rows(fits[model].sources[0], fits[model].by_rsd.estimate, cutoff)
        chosen = [row for row in rows if row.title in wanted]
        figures.append(
            Figure(
                f"figure-{number}", series_plot(chosen),
                f"Figure {number}: model {model}, {what}, measured and computed with the essential parameters, below "
                f"{cutoff:.3g} Hz, run without payload. The error is about {error_percent(chosen):.2g} % of the "
                "torque.",
            )
        )  # fmt: skip
    return tuple(figures)
