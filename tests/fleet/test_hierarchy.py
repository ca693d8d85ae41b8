"""Fleets as hierarchies: variances against ANOVA and statsmodels, intervals and alarms by Monte Carlo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.fleet import LogInformation, fit_hierarchy
from steelyard.fleet.changes import control_chart, doubtful_logs, find_changes, slopes_of
from steelyard.fleet.hierarchy import stacked_rows

TAU, OMEGA = np.array([0.05, 0.1, 0.2, 0.3, 0.5]), np.array([0.0, 0.05, 0.1, 0.0, 0.2])
MEAN = np.arange(1.0, 6.0)
UNITS, LOGS = 30, 5
TIMES = np.tile(np.arange(float(LOGS)), UNITS)
CAUSES = {f"p{k}": np.eye(5)[:, [k]] for k in range(5)} | {"first two": np.eye(5)[:, :2]}


def drawn(rng: np.random.Generator) -> tuple[list[LogInformation], np.ndarray]:
    """Return logs of units and the units' parameters; the first parameter does not show in first logs."""
    logs, units = [], MEAN + TAU * rng.standard_normal((UNITS, 5))
    for unit, parameters in enumerate(units):
        for log in range(LOGS):
            W = rng.standard_normal((30, 5)) @ (np.eye(5) + 0.5)
            W[:, 0] *= log > 0
            y = W @ (parameters + OMEGA * rng.standard_normal(5)) + rng.standard_normal(30)
            logs.append(LogInformation(unit, np.column_stack([W, y])))
    return logs, units


def changed(logs: list[LogInformation], unit: int, delta: np.ndarray) -> list[LogInformation]:
    """Return logs in which the parameters of a unit's log l are off by delta[l]."""
    found = list(logs)
    for log in range(LOGS):
        found[unit * LOGS + log] = moved(logs[unit * LOGS + log], delta[log])
    return found


def moved(log: LogInformation, delta: np.ndarray) -> LogInformation:
    """Return a log whose parameters are off by delta."""
    rows = log.rows.copy()
    rows[:, -1] += rows[:, :-1] @ delta
    return replace(log, rows=rows)


def balanced(rng: np.random.Generator) -> np.ndarray:
    """Return one measured parameter of 12 units with 6 logs each (12, 6), noise of variance 0.25 included."""
    return 3 + rng.standard_normal((12, 1)) + 0.8 * rng.standard_normal((12, 6))


def test_variances_of_a_balanced_fleet_are_those_of_anova():
    y = balanced(np.random.default_rng(4))
    logs = [LogInformation(u, np.array([[2.0, 2.0 * value]])) for u in range(12) for value in y[u]]
    found = fit_hierarchy(logs, np.array([3.0]))
    within = np.sum((y - y.mean(axis=1, keepdims=True)) ** 2) / (12 * 5)
    between = 6 * np.var(y.mean(axis=1), ddof=1)
    assert found.between_logs[0] + 0.25 == pytest.approx(within, rel=0.01)
    assert found.between_units[0] == pytest.approx((between - within) / 6, rel=0.01)
    assert found.common[0] == pytest.approx(y.mean(), rel=1e-9)
    assert found.common_covariance[0, 0] == pytest.approx(between / 72, rel=0.01)


def test_variances_and_units_are_those_of_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    y = balanced(np.random.default_rng(4))
    logs = [LogInformation(u, np.array([[2.0, 2.0 * value]])) for u in range(12) for value in y[u]]
    found = fit_hierarchy(logs, np.array([3.0]))
    theirs = statsmodels.MixedLM(y.ravel(), np.ones((72, 1)), np.repeat(np.arange(12), 6)).fit(reml=True)
    assert found.between_units[0] == pytest.approx(float(theirs.cov_re[0, 0]), rel=0.01)
    units = [float(theirs.fe_params[0] + theirs.random_effects[u].iloc[0]) for u in range(12)]
    assert found.unit_values[:, 0] == pytest.approx(units, rel=1e-3)


def test_steps_never_make_the_variances_less_likely():
    logs, _ = drawn(np.random.default_rng(0))
    found = fit_hierarchy(logs, MEAN)
    for variances in ("components", "between_logs"):
        for factor in (0.9, 1.1):
            other = replace(found, **{variances: factor * getattr(found, variances)})
            assert other.restricted_likelihood < found.restricted_likelihood + 2e-3


@pytest.mark.large
def test_intervals_cover_and_shrunken_estimates_beat_single_ones():
    rng, covered, common, units, gains = np.random.default_rng(1), [], [], [], []
    for _ in range(25):
        logs, true = drawn(rng)
        found = fit_hierarchy(logs, MEAN)
        low, high = found.variance_interval()
        covered.append((low <= TAU**2) & (high >= TAU**2))
        common.append(np.abs(found.common - MEAN) < 1.96 * np.sqrt(np.diagonal(found.common_covariance)))
        units.append(np.abs(found.unit_values - true) < 1.96 * found.unit_sigma)
        errors = [np.mean((one - true) ** 2, axis=0) for one in (found.unit_values, found.single_units()[0])]
        gains.append(errors[0] / errors[1])
    # 125 and 18,750 trials, the latter correlated within a fleet.
    assert 0.90 <= np.mean(covered) <= 0.99
    assert 0.88 <= np.mean(common) <= 0.99
    assert 0.93 <= np.mean(units) <= 0.97
    assert np.mean(gains, axis=0).max() < 1
    assert np.mean(gains, axis=0)[0] < 0.5  # varies less between units than single logs show


def test_one_more_log_gives_what_all_logs_together_give():
    logs, _ = drawn(np.random.default_rng(2))
    found = fit_hierarchy(logs[:-1], MEAN)
    whole = replace(found, unit_of=np.array([one.unit for one in logs]), rows=stacked_rows(logs))
    values, sigma = found.updated(logs[-1])
    # The common arm moves by the new log too, by a hundredth of its sigma.
    assert np.abs(values - whole.unit_values[-1]).max() < 0.1 * sigma.min()
    assert (sigma < found.unit_sigma[-1]).all()


@pytest.mark.large
def test_false_alarms_are_rarer_than_allowed():
    rng, alarms, beyond = np.random.default_rng(3), 0, 0
    for _ in range(30):
        logs, _ = drawn(rng)
        found = fit_hierarchy(logs, MEAN)
        alarms += bool(find_changes(found, TIMES, CAUSES))
        chart = control_chart(found, found.unit_values)
        off = np.abs(chart.values - found.unit_values[found.unit_of]) > chart.limit * chart.sigma
        beyond += bool(off.any())
    assert alarms <= 3
    assert beyond <= 3


def test_changes_are_found_with_unit_date_kind_and_size():
    logs, _ = drawn(np.random.default_rng(5))
    step, ramp, other = np.zeros((3, LOGS, 5))
    step[2:, 3], ramp[:, 1], other[:, 4] = 1.2, np.maximum(0, np.arange(LOGS) - 1) * 0.5, 4.5
    for unit, delta in ((3, step), (7, ramp), (9, other)):
        logs = changed(logs, unit, delta)
    found = {one.unit: one for one in find_changes(fit_hierarchy(logs, MEAN), TIMES, CAUSES)}
    assert sorted(found) == [3, 7, 9]
    assert (found[3].first, found[3].grows, found[3].cause) == (2, False, "p3")
    assert (found[7].grows, found[7].cause) == (True, "p1")
    assert (found[9].first, found[9].cause) == (0, "p4")
    assert abs(found[3].delta[0] - 1.2) < 3 * found[3].sigma[0] < 0.8
    assert abs(found[9].delta[0] - 4.5) < 4 * found[9].sigma[0]


def test_a_log_says_nothing_of_what_has_changed_in_it():
    logs, _ = drawn(np.random.default_rng(6))
    direction = np.array([[1.0], [0.0], [2.0], [0.0], [0.0]])
    left = logs[1].without(direction)
    assert np.abs(left.rows[:, :-1] @ direction).max() < 1e-12 * np.abs(logs[1].rows).max()
    assert moved(logs[1], direction[:, 0]).without(direction).rows == pytest.approx(left.rows, abs=1e-12)


def test_a_slope_over_temperature_is_found():
    rng = np.random.default_rng(7)
    logs, _ = drawn(rng)
    warm = 30 + 5 * rng.standard_normal(len(logs))
    warm[3] = np.nan
    logs = [
        moved(one, 0.02 * (0.0 if np.isnan(t) else t - 30) * np.eye(5)[2]) for one, t in zip(logs, warm, strict=True)
    ]
    (slope,) = slopes_of(fit_hierarchy(logs, MEAN), warm, ["p2"], [2])
    assert abs(slope.slope - 0.02) < 3 * slope.sigma
    assert slope.sigma < 0.005
    assert slopes_of(fit_hierarchy(logs, MEAN), np.full(len(logs), np.nan), ["p2"], [2]) == []


def test_units_that_differ_along_one_direction_are_told_by_it():
    rng, covered, gains = np.random.default_rng(8), [], []
    direction = np.array([[0.2], [0.4], [-0.3], [0.5], [0.1]])
    along = np.column_stack([np.eye(5), direction])
    for _ in range(12):
        units = MEAN + rng.standard_normal((UNITS, 1)) @ direction.T
        logs = []
        for unit, parameters in enumerate(units):
            for scale in (0.1, 0.3):
                W = scale * rng.standard_normal((30, 5)) @ (np.eye(5) + 0.5)
                logs.append(LogInformation(unit, np.column_stack([W, W @ parameters + rng.standard_normal(30)])))
        found, alone = fit_hierarchy(logs, MEAN, along), fit_hierarchy(logs, MEAN)
        covered.append(np.abs(found.unit_values - units) < 1.96 * found.unit_sigma)
        gains.append([np.mean((one.unit_values - units) ** 2) for one in (found, alone)])
        assert found.restricted_likelihood > alone.restricted_likelihood
    assert 0.93 <= np.mean(covered) <= 0.999
    assert np.sum(gains, axis=0)[0] < 0.7 * np.sum(gains, axis=0)[1]


def test_a_log_with_too_small_sigmas_is_doubted_and_one_of_a_changed_unit_is_not():
    logs, _ = drawn(np.random.default_rng(9))
    delta = np.zeros((LOGS, 5))
    delta[3:, 2] = 2.0
    logs = changed(logs, 4, delta)
    logs[11 * LOGS + 2] = moved(logs[11 * LOGS + 2], np.array([1.5, -2.0, 2.5, -2.0, 3.0]))
    found = doubtful_logs(fit_hierarchy(logs, MEAN), CAUSES)
    assert np.flatnonzero(found > 1).tolist() == [11 * LOGS + 2]
    assert found.max() > 2
