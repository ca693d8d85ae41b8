"""Figures of a study: bias, coverage, spread against sigma and bound, and time, for every estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..distributions import binom_cdf, chi2_ppf
from ..errors import SimulationError
from ..plots import Chart, bar_plot, interval_plot
from .statistics import LEVEL
from .verdict import CaseVerdict, ParameterVerdict, case_label

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .run import StudyResult

Drawn = tuple[float, float, float]
"""A value and the ends of its 95 % interval."""

_UNKNOWN: Drawn = (np.nan, np.nan, np.nan)


def bias_in_sigmas(one: ParameterVerdict) -> Drawn:
    """Return the bias over the spread of the estimates, with its interval."""
    if not one.spread > 0:
        return _UNKNOWN
    return one.bias / one.spread, one.bias_interval[0] / one.spread, one.bias_interval[1] / one.spread


def coverage_percent(one: ParameterVerdict) -> Drawn:
    """Return the share of 95 % intervals that hold the truth, with its interval [%]."""
    return 100 * one.coverage, 100 * one.coverage_interval[0], 100 * one.coverage_interval[1]


def spread_over_sigma(one: ParameterVerdict) -> Drawn:
    """Return the spread of the estimates over their reported sigma, with its interval (chi-square)."""
    if not one.reported_sigma > 0:
        return _UNKNOWN
    ratio, free = one.spread / one.reported_sigma, one.runs - 1
    high, low = np.sqrt(free / np.asarray(chi2_ppf([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], free)))
    return ratio, ratio * float(low), ratio * float(high)


def efficiency_percent(one: ParameterVerdict) -> Drawn:
    """Return the Cramer-Rao variance over the mean squared error, with its interval [%]."""
    if one.efficiency is None or one.efficiency_interval is None:
        return _UNKNOWN
    return 100 * one.efficiency, 100 * one.efficiency_interval[0], 100 * one.efficiency_interval[1]


def chance_of_coverage(runs: int) -> tuple[float, float]:
    """Return between which shares [%] the coverage of right 95 % intervals lies in 95 of 100 studies."""
    below = [binom_cdf(hits, runs, LEVEL) for hits in range(runs + 1)]
    low = next(hits for hits, share in enumerate(below) if share > 0.5 - LEVEL / 2)
    high = next(hits for hits, share in enumerate(below) if share >= 0.5 + LEVEL / 2)
    return 100 * low / runs, 100 * high / runs


def case_chart(
    verdicts: Sequence[CaseVerdict], value: Callable[[ParameterVerdict], Drawn], title: str, levels: Mapping[str, float]
) -> Chart:
    """Return a number of every parameter, a series for each case, with levels as vertical lines."""
    names = list(dict.fromkeys(one.name for verdict in verdicts for one in verdict.parameters))
    cases = [verdict.case for verdict in verdicts]
    series = {}
    for verdict in verdicts:
        known = {one.name: value(one) for one in verdict.parameters}
        values, low, high = np.array([known.get(name, _UNKNOWN) for name in names], dtype=float).reshape(-1, 3).T
        series[case_label(verdict.case, cases)] = (values, np.array([values - low, high - values]))
    chart = interval_plot(names, series, title)
    for name, level in levels.items():
        chart.level(level, name, vertical=True)
    return chart


def bias_chart(verdicts: Sequence[CaseVerdict]) -> Chart:
    """Return the bias of every parameter in units of its spread."""
    return case_chart(verdicts, bias_in_sigmas, "bias / standard deviation of the estimates", {"": 0.0})


def coverage_chart(verdicts: Sequence[CaseVerdict]) -> Chart:
    """Return the coverage of every parameter, with the range that right intervals have by chance."""
    low, high = chance_of_coverage(max(one.runs for verdict in verdicts for one in verdict.parameters))
    levels = {"95 %": 95.0} | {"chance": low} | ({"": high} if high < 100 else {})
    return case_chart(verdicts, coverage_percent, "95 % intervals that hold the truth [%]", levels)


def sigma_chart(verdicts: Sequence[CaseVerdict]) -> Chart:
    """Return the observed spread of every parameter over the reported sigma."""
    return case_chart(verdicts, spread_over_sigma, "observed spread / reported sigma", {"as reported": 1.0})


def efficiency_chart(verdicts: Sequence[CaseVerdict]) -> Chart:
    """Return the efficiency of every parameter."""
    return case_chart(verdicts, efficiency_percent, "efficiency: bound variance / mean squared error [%]", {"": 100.0})


def time_chart(verdicts: Sequence[CaseVerdict]) -> Chart:
    """Return the median processor time of an estimation in every case."""
    cases = [verdict.case for verdict in verdicts]
    names = [case_label(case, cases) for case in cases]
    seconds = np.array([verdict.seconds for verdict in verdicts])
    return bar_plot(names, {"predicted": 1e3 * seconds}, "CPU time of an estimation [ms]", logarithmic=True)


def estimated(verdicts: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    """Return the cases that have parameters to draw.

    Raises:
        SimulationError: If there is none.
    """
    found = [verdict for verdict in verdicts if verdict.parameters]
    if not found:
        raise SimulationError("no case has two runs that gave estimates: there is nothing to draw")
    return found


def plot_bias(self: StudyResult) -> go.Figure:
    """Return the bias of every parameter in standard deviations of the estimates, with 95 % intervals, by estimator.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = {"kind": "white", "std": [0.5, 0.05]}
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": noise}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.plot_bias().layout.xaxis.title.text
        'bias / standard deviation of the estimates'
    """
    return bias_chart(estimated(self.verdicts)).figure()


def plot_coverage(self: StudyResult) -> go.Figure:
    """Return the share of 95 % intervals that hold the truth, for every parameter, by estimator.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = {"kind": "white", "std": [0.5, 0.05]}
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": noise}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.plot_coverage().layout.xaxis.title.text
        '95 % intervals that hold the truth [%]'
    """
    return coverage_chart(estimated(self.verdicts)).figure()


def plot_sigmas(self: StudyResult) -> go.Figure:
    """Return the observed spread over the reported sigma, for every parameter, by estimator.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = {"kind": "white", "std": [0.5, 0.05]}
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": noise}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.plot_sigmas().layout.xaxis.title.text
        'observed spread / reported sigma'
    """
    return sigma_chart(estimated(self.verdicts)).figure()


def plot_times(self: StudyResult) -> go.Figure:
    """Return the median processor time of an estimation, by estimator.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = {"kind": "white", "std": [0.5, 0.05]}
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": noise}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.plot_times().layout.yaxis.title.text
        'CPU time of an estimation [ms]'
    """
    return time_chart(self.verdicts).figure()


def to_html(self: StudyResult, provenance: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> str:
    """Return the report as one HTML document, as run folders have it.

    Args:
        self: The study.
        provenance: Where it comes from, texts by name.
        notes: Further notes.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = {"kind": "white", "std": [0.5, 0.05]}
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": noise}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.to_html()[:15]
        '<!doctype html>'
    """
    from ..report import page_html
    from .report import study_page  # loaded when used: most studies are printed without a page

    return page_html(study_page(self, provenance or {}, notes))
