"""Recursive least squares: statsmodels' numbers, weighted least squares at the end, bands that cover on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.regression.recursive_ls import RecursiveLS

import simulated_experiments
from arms import arm
from estimate.synthetic import RATE, SyntheticRows, smooth_columns, sources_of
from steelyard.errors import EstimateError
from steelyard.estimate import NoiseModel, System, towards_prior, weighted
from steelyard.estimate.evidence import Evidence
from steelyard.estimate.recursive import RecursiveSettings, recursive_least_squares
from steelyard.model import build_model
from steelyard.observe import Preparation, equations_of, reduce_rows, resolve_preparation, row_source

TRUE = np.array([1.0, -2.0, 3.0])
COLUMNS = (("p0", "p1"), ("p1", "p2"))
GROUPS = [("a", "motor", "joint_1"), ("a", "motor", "joint_2")]


class GappyRows(SyntheticRows):
    """Rows of which each equation has its own unusable ones."""

    def __init__(self, *given, unusable=((), ()), **choices):
        super().__init__(*given, **choices)
        self.unusable = unusable

    def __iter__(self):
        for block in super().__iter__():
            share, last = block.share.copy(), block.first + len(block.time)
            for e, gone in enumerate(self.unusable):
                share[e, [k - block.first for k in gone if block.first <= k < last]] = 0.4
            yield replace(block, share=share)


def rows_of(seed, count=300, sizes=(1.0, 3.0)):
    rng = np.random.default_rng(seed)
    W = [smooth_columns(rng, count, 2) for _ in range(2)]
    y = [
        part @ TRUE[at] + size * rng.standard_normal(count)
        for part, at, size in zip(W, ([0, 1], [1, 2]), sizes, strict=True)
    ]
    return [np.column_stack(pair) for pair in zip(W, y, strict=True)]


NO_NOISE = NoiseModel(np.ones(1), {}, {}, {})  # recursive least squares does not look at it


def evidence_of(*sources, columns=("p0", "p1", "p2"), deviations=None):
    given = sources_of(*sources)
    plain = weighted(reduce_rows(given), columns, deviations)
    return Evidence(tuple(given), given[0].equations, plain, NO_NOISE)


def stacked(pairs, deviations, usable=None):
    """Return weighted rows (2 N, 4) in the order of time, and the instant of each."""
    count = len(pairs[0])
    rows = np.zeros((count, 2, 4))
    for e, (pair, at) in enumerate(zip(pairs, ([0, 1, 3], [1, 2, 3]), strict=True)):
        rows[:, e, at] = pair / deviations[e]
    selected = np.ones((count, 2), dtype=bool) if usable is None else usable
    return rows[selected], np.repeat(np.arange(count), 2).reshape(count, 2)[selected]


def solution(rows):
    return np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]


@pytest.mark.parametrize("cuts", [(), (1, 2, 137)])
def test_coefficients_and_sigmas_in_time_are_those_of_statsmodels(cuts):
    evidence = evidence_of(SyntheticRows("a", rows_of(0), COLUMNS, cuts=cuts))
    found = recursive_least_squares(evidence, RecursiveSettings(), {})
    rows, _ = stacked(rows_of(0), [evidence.plain.deviations[group] for group in GROUPS])
    reference = RecursiveLS(rows[:, -1], rows[:, :-1]).fit()
    history = found.history
    assert history is not None
    skipped = 300 - len(history.time)
    np.testing.assert_allclose(history.time, np.arange(skipped, 300) / RATE)
    coefficients = reference.recursive_coefficients
    np.testing.assert_allclose(history.values, coefficients.filtered[:, 1::2][:, skipped:], rtol=1e-8, atol=1e-8)
    variance = np.diagonal(coefficients.filtered_cov, axis1=0, axis2=1)[1::2] / reference.scale
    np.testing.assert_allclose(history.sigma, np.sqrt(variance[skipped:]).T, rtol=1e-8)
    covariance = reference.filtered_state_cov[:, :, -1] / reference.scale
    np.testing.assert_allclose(found.estimate.covariance, covariance, rtol=1e-8)


def test_without_forgetting_it_ends_at_weighted_least_squares():
    evidence = evidence_of(SyntheticRows("a", rows_of(1), COLUMNS, cuts=(50,)))
    estimate = recursive_least_squares(evidence, RecursiveSettings(), {}).estimate
    assert (estimate.method, estimate.covariance_kind) == ("rls", "classical")
    np.testing.assert_allclose(estimate.values, evidence.plain.values, rtol=1e-10)
    np.testing.assert_allclose(estimate.covariance, evidence.plain.covariance, rtol=1e-10)
    np.testing.assert_array_equal(estimate.freedom, evidence.plain.freedom)
    assert estimate.system.rows == evidence.plain.system.rows == 600


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("most", [7, 2000])
def test_older_rows_count_less_however_the_history_is_thinned(forgetting, most):
    evidence = evidence_of(SyntheticRows("a", rows_of(2), COLUMNS, cuts=(11, 200)))
    found = recursive_least_squares(evidence, RecursiveSettings(forgetting=forgetting, most_instants=most), {})
    rows, instant = stacked(rows_of(2), [evidence.plain.deviations[group] for group in GROUPS])
    history = found.history
    assert history is not None
    assert 3 < len(history.time) <= most
    assert history.time[-1] == pytest.approx(2.99)
    for k in np.flatnonzero(history.time > 0.05)[:: max(1, len(history.time) // 5)]:
        now = round(float(history.time[k]) * RATE)
        weight = forgetting ** (now - instant[instant <= now])
        used = rows[instant <= now]
        W = used[:, :-1]
        P = np.linalg.inv(W.T @ (weight[:, None] * W))
        covariance = P @ (W.T @ (weight[:, None] ** 2 * W)) @ P
        np.testing.assert_allclose(history.values[:, k], P @ W.T @ (weight * used[:, -1]), rtol=1e-8)
        np.testing.assert_allclose(history.sigma[:, k], np.sqrt(np.diag(covariance)), rtol=1e-8)
    np.testing.assert_allclose(found.estimate.values, history.values[:, -1], rtol=1e-12)
    np.testing.assert_allclose(found.estimate.sigma, history.sigma[:, -1], rtol=1e-12)


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.large
def test_bands_cover_as_often_as_they_say_on_the_way_and_at_the_end(forgetting):
    deviations = dict(zip(GROUPS, (1.0, 3.0), strict=True))
    inside = []
    for seed in range(200):
        evidence = evidence_of(SyntheticRows("a", rows_of(1000 + seed, 120), COLUMNS), deviations=deviations)
        settings = RecursiveSettings(forgetting=forgetting, most_instants=20)
        history = recursive_least_squares(evidence, settings, {}).history
        assert history is not None
        at = [0, 3, 8, -1]
        inside.append(np.abs(history.values[:, at] - TRUE[:, None]) <= 1.96 * history.sigma[:, at])
    covered = np.mean(inside, axis=(0, 1))
    # 600 intervals, three of a run together: four standard deviations are 0.036 to 0.06.
    assert (np.abs(covered - 0.95) < 0.045).all(), covered


def test_forgetting_widens_the_bands_and_follows_a_change():
    pairs = rows_of(3, 600)
    pairs[0][300:, -1] += pairs[0][300:, 0] * 4.0  # p0 jumps from 1 to 5
    evidence = evidence_of(SyntheticRows("a", pairs, COLUMNS))
    whole = recursive_least_squares(evidence, RecursiveSettings(), {}).estimate
    recent = recursive_least_squares(evidence, RecursiveSettings(memory=0.5), {}).estimate
    assert abs(recent.values[0] - 5.0) < 4 * recent.sigma[0] < 4.0
    assert whole.values[0] < 4.0
    assert (recent.sigma > 2 * whole.sigma).all()


def test_memory_is_the_time_in_which_weights_fall_to_one_over_e():
    evidence = evidence_of(SyntheticRows("a", rows_of(4), COLUMNS, factor=10))
    by_time = recursive_least_squares(evidence, RecursiveSettings(memory=4.0), {})
    by_factor = recursive_least_squares(evidence, RecursiveSettings(forgetting=np.exp(-0.1 / 4.0)), {})
    np.testing.assert_allclose(by_time.estimate.values, by_factor.estimate.values, rtol=1e-12)
    assert "to 1/e in 4 s" in " ".join(by_time.notes)


def test_rows_of_one_instant_come_together_where_equations_have_other_gaps():
    unusable = (tuple(range(40, 60)), tuple(range(50, 90)))
    source = GappyRows("a", rows_of(5), COLUMNS, cuts=(55, 70), unusable=unusable)
    evidence = evidence_of(source)
    found = recursive_least_squares(evidence, RecursiveSettings(forgetting=0.95), {})
    usable = np.ones((300, 2), dtype=bool)
    usable[40:60, 0] = usable[50:90, 1] = False
    rows, instant = stacked(rows_of(5), [evidence.plain.deviations[group] for group in GROUPS], usable)
    # Instants without any row forget nothing: 50 to 59.
    counts = np.asarray(usable.any(axis=1))
    age = np.array([counts[k + 1 :].sum() for k in instant])
    np.testing.assert_allclose(found.estimate.values, solution(rows * 0.95 ** (age[:, None] / 2)), rtol=1e-8)
    history = found.history
    assert history is not None
    assert not ((history.time > 0.495) & (history.time < 0.595)).any()
    assert ((history.time > 0.595) & (history.time < 0.605)).any()


def test_recordings_follow_one_another_on_one_clock():
    first, second = rows_of(6, 100), rows_of(7, 80, sizes=(2.0, 0.5))
    evidence = evidence_of(SyntheticRows("a", first, COLUMNS), SyntheticRows("b", second, COLUMNS))
    reported = []
    found = recursive_least_squares(
        evidence, RecursiveSettings(), {}, lambda done, total: reported.append((done, total))
    )
    np.testing.assert_allclose(found.estimate.values, evidence.plain.values, rtol=1e-10)
    assert found.history is not None
    np.testing.assert_allclose(np.diff(found.history.time), 1 / RATE)
    assert found.history.time[-1] == pytest.approx(1.79)
    assert reported[-1] == (2, 2)


def test_columns_that_are_not_estimated_and_cells_without_weight_are_left_out():
    evidence = evidence_of(SyntheticRows("a", rows_of(8), COLUMNS), columns=("p0", "p2"))
    found = recursive_least_squares(evidence, RecursiveSettings(), {})
    assert found.estimate.columns == ("p0", "p2")
    np.testing.assert_allclose(found.estimate.values, evidence.plain.values, rtol=1e-10)
    one = replace(evidence.plain, deviations={GROUPS[0]: evidence.plain.deviations[GROUPS[0]]})
    alone = recursive_least_squares(
        replace(evidence, plain=replace(one, system=System(("p0", "p1"), np.eye(3), 300))), RecursiveSettings(), {}
    )
    np.testing.assert_allclose(alone.estimate.values, solution(rows_of(8)[0]), rtol=1e-9)


def test_a_prior_start_is_ridge_regression_and_has_an_estimate_from_the_first_instant():
    evidence = evidence_of(SyntheticRows("a", rows_of(9), COLUMNS))
    prior = {"p0": (2.0, 0.01), "p2": (0.0, 0.5)}
    found = recursive_least_squares(evidence, RecursiveSettings(wide=1e7), prior)
    assert found.notes == ("started from the prior",)
    reference = towards_prior(evidence.plain, prior)
    np.testing.assert_allclose(found.estimate.values, reference.values, rtol=1e-8)
    np.testing.assert_allclose(found.estimate.covariance, reference.covariance, rtol=1e-8, atol=1e-14)
    assert found.history is not None
    assert len(found.history.time) == 300
    assert found.history.values[0, 0] == pytest.approx(2.0, abs=0.05)
    square = recursive_least_squares(evidence, RecursiveSettings(start="square"), prior)
    np.testing.assert_allclose(square.estimate.values, evidence.plain.values, rtol=1e-10)
    assert "the prior is not used" in square.notes[0]


def test_rows_of_an_arm_give_what_weighted_least_squares_gives():
    recording = simulated_experiments.scara(1)
    equations = equations_of(build_model(arm("scara_2r")))
    resolved = resolve_preparation(Preparation(decimation=10), [recording])
    sources = (row_source(recording, equations, resolved, "run"),)
    plain = weighted(reduce_rows(sources), equations.names)
    evidence = Evidence(sources, equations, plain, NO_NOISE)
    found = recursive_least_squares(evidence, RecursiveSettings(), {})
    np.testing.assert_allclose(found.estimate.values, plain.values, rtol=1e-9)
    np.testing.assert_allclose(found.estimate.covariance, plain.covariance, rtol=1e-8)
    assert found.history is not None
    assert found.history.converged_after("ZZ1", float(plain.values[plain.columns.index("ZZ1")])) is not None


def test_forgetting_too_fast_is_said_with_the_parameter_that_is_lost():
    pairs = rows_of(10)
    pairs[1][200:, :2] = pairs[1][200:, [0, 0]]  # p1 and p2 look alike from there on
    pairs[0][200:, 1] = 0.0
    evidence = evidence_of(SyntheticRows("a", pairs, COLUMNS))
    with pytest.raises(
        EstimateError, match=r"'p2' is indistinguishable from the parameters before it .*forget more slowly"
    ):
        recursive_least_squares(evidence, RecursiveSettings(forgetting=0.5), {})


def test_a_prior_of_an_unknown_parameter_is_refused():
    evidence = evidence_of(SyntheticRows("a", rows_of(11), COLUMNS))
    with pytest.raises(EstimateError, match=r"prior for 'p00'.*did you mean 'p0'"):
        recursive_least_squares(evidence, RecursiveSettings(start="prior"), {"p00": (1.0, 1.0)})
    with pytest.raises(EstimateError, match=r"prior for 'p0': got 1.0 .- 0.0"):
        recursive_least_squares(evidence, RecursiveSettings(start="prior"), {"p0": (1.0, 0.0)})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": "squire"}, "did you mean 'square'"),
        ({"forgetting": 0.0}, "above 0 and at most 1"),
        ({"forgetting": float("nan")}, "above 0 and at most 1"),
        ({"memory": -1.0}, "a finite number above 0"),
        ({"memory": 3.0, "forgetting": 0.9}, "twice; give one"),
        ({"wide": float("inf")}, "a finite number above 0"),
        ({"most_instants": 1}, "a whole number from 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(EstimateError, match=message):
        RecursiveSettings(**wrong)
